"""Work and bytes at the peak by layer."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.report.layers import Layer
from tests.helpers.onnx.small_models import model, node, value

PARTS = st.sampled_from(["a", "b", "0", "1", "a.0", "conv"])
NAMES = st.lists(st.lists(PARTS, max_size=4).map("/".join) | st.text("a./", max_size=9), min_size=1, max_size=12)


def _chain(names: list[str]) -> engine.Graph:
    """Returns a chain of operators, which grow in turn and shrink, with these names."""
    nodes: list[Any] = []
    for i, name in enumerate(names):
        inputs = [f"t{i}", "h"] if i % 2 else [f"t{i}"]
        nodes.append(node("Mul" if i % 2 else "Sigmoid", inputs, [f"t{i + 1}"], name=name))
    proto = model(nodes, [value("t0", (4, 8)), value("h", (4, 8))], [f"t{len(names)}"])
    return engine.load_onnx(proto)


def _layers(graph: engine.Graph, **options: Any) -> tuple[engine.Report, tuple[Layer, ...]]:
    report = engine.make_plan(graph, **options).report()
    return report, report.layers


def _with_operators(layers: Iterable[Layer]) -> set[str]:
    """Returns the layers of operators; inputs that are alive at the peak are of the layer "", too."""
    return {layer.name for layer in layers if layer.operators}


@settings(max_examples=20, deadline=None)
@given(NAMES, st.sampled_from([0, 3]))
def test_layers_add_up_to_the_whole(names: list[str], level: int) -> None:
    report, layers = _layers(_chain(names), optimise=level)
    if layers:
        assert sum(layer.operators for layer in layers) == report.operators
        assert sum(layer.flops for layer in layers) == report.flops
        assert sum(layer.peak_bytes for layer in layers) == report.peak_bytes
        assert sum(layer.share for layer in layers) == pytest.approx(1)
        assert 2 <= len(_with_operators(layers)) <= report.operators // 2
        assert len({layer.name for layer in layers}) == len(layers)
        assert [layer.peak_bytes for layer in layers] == sorted((y.peak_bytes for y in layers), reverse=True)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["layer1.0.conv1", "layer1.0/relu", "layer1.1.conv1", "layer1.1/relu"], {"layer1.0", "layer1.1"}),
        (
            ["/layer1/layer1.0/conv1/Conv", "/layer1/layer1.0/relu/Relu", "/fc/Gemm", "/fc/Add"],
            {"layer1/layer1.0", "fc"},
        ),
        (["a/x", "a/y", "z", "w"], {"a", ""}),
        (["x", "y", "z", "w"], set()),
        (["a/x", "a/y", "a/z"], set()),
        (["a/x", "b/y", "c/z"], set()),
    ],
)
def test_layers_are_what_names_begin_with(names: list[str], wanted: set[str]) -> None:
    _, layers = _layers(_chain(names), optimise=0)
    assert _with_operators(layers) == wanted


def test_paths_are_cut_where_there_are_too_many_layers() -> None:
    names = [f"stage{i % 3}/block{i}/{op}" for i in range(100) for op in ("conv", "relu")]
    _, layers = _layers(_chain(names), optimise=0)
    assert _with_operators(layers) == {"stage0", "stage1", "stage2"}


def test_long_names_cost_little() -> None:
    names = ["a." * 50_000 + end for end in ("x", "y")] + ["/" * 100_000 + "b/x", "b/y"]
    _, layers = _layers(_chain(names), optimise=0)
    assert _with_operators(layers) == {".".join("a" * 15), "b"}


def test_explanations_and_texts_have_the_layers() -> None:
    plan = engine.make_plan(_chain(["a.x", "a.y", "b.x", "b.y"]), optimise=0)
    explanation = plan.explain()
    assert explanation.layers == plan.report().layers
    assert {"a", "b"} < {layer["name"] for layer in explanation.to_json()["layers"]}
    assert "\nBy layer:\n  layer" in explanation.text()
    assert "\nby layer:\n  layer" in plan.report().text()
    assert "layer" not in engine.make_plan(_chain(["x", "y"])).explain().text()
