"""Open lengths that are long: windows and strides of hundreds and thousands, in every order of names."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.cli.main import ERROR
from engine.text.errors import FeedError, ModelError
from ops.tensor.spec import Array
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.audio_models import STATE, long_window, squeezed_detector, strided_encoder, voice_detector
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

LENGTHS = {
    "encoder": ((1, 400), (2, 719), (1, 720), (3, 4001), (1, 16000)),
    "window": ((1, 512), (2, 1023), (1, 1024), (3, 5000), (1, 48000)),
    "detector": ((1, 256), (2, 512), (1, 576), (3, 1600), (1, 16000)),
}
"""Batches and lengths of time that each network runs."""


def _networks() -> Iterator[tuple[str, str, str, Any]]:
    """Yields networks: their kind, the names of batch and time, and the model."""
    for batch, time in itertools.permutations(("N", "T")):
        yield "encoder", batch, time, strided_encoder((batch, 1, time))
        yield "window", batch, time, long_window((batch, 1, time))
        yield "detector", batch, time, voice_detector(batch, time)
    yield "encoder", "x_0", "x_2", strided_encoder((None, 1, None))
    yield "window", "x_0", "x_2", long_window((None, 1, None))
    yield "encoder", "", "T", strided_encoder((1, 1, "T"))
    yield "window", "", "T", long_window((1, 1, "T"))


NETWORKS = list(_networks())
IDS = [f"{kind} {batch or 1},{time}" for kind, batch, time, _ in NETWORKS]


def _feeds(kind: str, batch: int, time: int, rate: int = 16000) -> dict[str, Array]:
    wave = np.random.default_rng((batch, time)).standard_normal((batch, 1, time)).astype(np.float32)
    if kind != "detector":
        return {"x": wave}
    state = np.full((2, batch, STATE), 0.25, np.float32)
    return {"x": wave[:, 0], "state": state, "rate": np.asarray(rate)}


def _check(outputs: Mapping[str, Array], expected: Sequence[Array]) -> None:
    for (name, ours), theirs in zip(outputs.items(), expected, strict=True):
        assert ours.shape == theirs.shape, name
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _in_every_order(proto: Any) -> Iterator[Any]:
    """Yields the model with its inputs in every order: names are met in the order of the inputs."""
    for inputs in itertools.permutations(proto.graph.input):
        turned = onnx.ModelProto()
        turned.CopyFrom(proto)
        del turned.graph.input[:]
        turned.graph.input.extend(inputs)
        yield turned


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "batch", "time", "proto"), NETWORKS, ids=IDS)
def test_long_windows_of_open_lengths_run_as_in_onnxruntime(kind: str, batch: str, time: str, proto: Any) -> None:
    graph = engine.load_onnx(proto)
    assert list(graph.symbols) == [name for name in (batch, time) if name]
    exe = engine.compile(graph)
    for n, t in LENGTHS[kind]:
        for rate in (16000, 8000) if kind == "detector" else (0,):
            feeds = _feeds(kind, n if batch else 1, t, rate)
            _check(exe.run(dict(feeds)), run_onnxruntime(proto, feeds))


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "time"), [("N", "T"), ("T", "N")])
def test_a_voice_detector_of_open_lengths_runs_whatever_the_order_of_its_inputs(batch: str, time: str) -> None:
    for proto in _in_every_order(voice_detector(batch, time)):
        exe = engine.compile(engine.load_onnx(proto))
        feeds = _feeds("detector", 2, 777)
        _check(exe.run(dict(feeds)), run_onnxruntime(proto, feeds))


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS[:3], ids=IDS[:3])
def test_the_command_runs_long_windows_of_open_lengths(
    network: tuple[str, str, str, Any], tmp_path: Path, capsys: Capture
) -> None:
    kind, batch, time, proto = network
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    for n, t in LENGTHS[kind]:
        report = data(["compare", str(path), "--dim", f"{batch}={n},{time}={t}", "--oracle", "onnxruntime"], capsys)
        assert report["oracle_difference"] <= 1e-5


@pytest.mark.parametrize(("batch", "time"), [("N", "T"), ("T", "N")])
def test_a_branch_that_a_later_operator_needs_is_taken(batch: str, time: str) -> None:
    """One frame is squeezed away; the LSTM behind takes nothing else, so all lengths of more frames are refused."""
    proto = squeezed_detector(batch, time)
    exe = engine.compile(engine.load_onnx(proto))
    for n, t in ((1, 256), (2, 300), (1, 512), (3, 600), (1, 1279)):
        feeds = {"x": _feeds("encoder", n, t)["x"][:, 0]}
        _check(exe.run(dict(feeds)), run_onnxruntime(proto, feeds))
    with pytest.raises(FeedError, match=rf"{time}=1300 do not fit: .*\(shapes=, --shape\)"):
        exe.run({"x": np.zeros((1, 1300), np.float32)})


@pytest.mark.parametrize("shape", [(1, 256), (2, 1279), (1, 1300), (3, 4000)])
def test_lengths_for_all_names_are_as_good_as_a_shape(shape: tuple[int, int], tmp_path: Path, capsys: Capture) -> None:
    """One frame takes one branch, and more take the other one: a graph with open lengths has one of them."""
    path = tmp_path / "model.onnx"
    onnx.save(squeezed_detector("N", "T", has_lstm=False), path)
    n, t = shape
    for lengths in (["--dim", f"N={n},T={t}"], ["--shape", f"x={n},{t}"]):
        report = data(["compare", str(path), *lengths, "--oracle", "onnxruntime"], capsys)
        assert report["oracle_difference"] <= 1e-5
    assert "T=" in error(["plan", str(path), "--dim", f"N={n}"], ERROR, capsys)
    assert "does not fit into 200 elements" in error(["plan", str(path), "--dim", "N=1,T=200"], ERROR, capsys)


Layer = tuple[str, tuple[int, ...], tuple[int, ...], int]
"""An operator, its windows and strides, and the padding in front of and behind each axis."""


@st.composite
def _window_layers(draw: st.DrawFn) -> tuple[list[Layer], tuple[int, ...]]:
    """Draws layers, and the lengths that their input needs at least."""
    axes = draw(st.integers(1, 2))
    most = 3000 if axes == 1 else 40
    layers: list[Layer] = []
    for _ in range(draw(st.integers(1, 3))):
        windows = tuple(draw(st.integers(1, most) | st.sampled_from((1, 2, 3, most))) for _ in range(axes))
        strides = tuple(draw(st.integers(1, n) | st.just(n)) for n in windows)
        kind = draw(st.sampled_from(("Conv", "MaxPool", "AveragePool")))
        layers.append((kind, windows, strides, draw(st.integers(0, min(2, *(n - 1 for n in windows))))))
        most = max(most // 12, 2)
    least = [1] * axes
    for _, windows, strides, pad in reversed(layers):
        least = [max((n - 1) * s + w - 2 * pad, 1) for n, w, s in zip(least, windows, strides, strict=True)]
    return layers, tuple(least)


def _window_network(layers: Sequence[Layer], dims: Sequence[str]) -> Any:
    nodes, weights, x = [], {}, "x"
    for i, (kind, windows, strides, pad) in enumerate(layers):
        inputs = [x, f"w{i}"] if kind == "Conv" else [x]
        if kind == "Conv":
            weights[f"w{i}"] = np.random.default_rng(i).standard_normal((1, 1, *windows)).astype(np.float32)
        attrs = {"strides": strides, "pads": (pad,) * (2 * len(windows))}
        nodes.append(node(kind, inputs, [f"y{i}"], kernel_shape=windows, **attrs))
        x = f"y{i}"
    nodes.append(node("Relu", [x], ["y"]))
    return model(nodes, [value("x", (dims[0], 1, *dims[1:]))], initializers=weights)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(_window_layers(), st.permutations(("a", "b", "c")), st.lists(st.integers(0, 700), min_size=2, max_size=2))
def test_random_long_windows_give_what_the_network_of_fixed_lengths_gives(
    drawn: tuple[list[Layer], tuple[int, ...]], names: list[str], more: list[int]
) -> None:
    layers, least = drawn
    proto = _window_network(layers, names[: 1 + len(least)])
    exe = engine.compile(engine.load_onnx(proto), optimise=0)
    for extra in ([0, 0], more):
        shape = (1, 1, *(n + m // (1 if len(least) == 1 else 20) for n, m in zip(least, extra, strict=False)))
        feeds = {"x": np.random.default_rng(7).standard_normal(shape).astype(np.float32)}
        fixed = engine.compile(engine.load_onnx(proto, shapes={"x": shape}), optimise=0).run(dict(feeds))["y"]
        np.testing.assert_array_equal(exe.run(dict(feeds))["y"], fixed)


@pytest.mark.parametrize("window", [512, 5000, 30_000])
def test_a_graph_that_python_builds_takes_long_windows(window: int) -> None:
    graph = engine.Graph("long")
    batch, time, y = "batch", "time", "y"
    x = graph.input("x", (batch, 1, time))
    weights = np.random.default_rng(0).standard_normal((2, 1, window)).astype(np.float32) / np.float32(window)
    graph.output(ops.conv(x, weights, strides=(window,)), y)
    exe = engine.compile(graph)
    for n, t in ((1, window), (3, 2 * window - 1), (2, 3 * window)):
        fed = np.random.default_rng((n, t)).standard_normal((n, 1, t)).astype(np.float32)
        rows = fed[:, 0, : t // window * window].reshape(n, -1, window)
        np.testing.assert_allclose(exe(x=fed)[y], np.einsum("nfw,cw->ncf", rows, weights[:, 0]), atol=1e-6)
    with pytest.raises(FeedError, match=f"a window of {window} does not fit into {window - 1} elements"):
        exe(x=np.zeros((1, 1, window - 1), np.float32))


def _positions(window: int) -> Any:
    """Returns a sum of an embedding of 20 positions and a convolution, which needs at least `window` of them."""
    nodes = [
        node("Shape", ["x"], ["shape"], start=2, end=3),
        node("Squeeze", ["shape", "zeros"], ["length"]),
        node("Range", ["zero", "length", "one"], ["positions"]),
        node("Gather", ["table", "positions"], ["rows"]),
        node("Add", ["x", "rows"], ["sum"]),
        node("Conv", ["sum", "w"], strides=[window]),
    ]
    arrays = {"zero": np.asarray(0), "one": np.asarray(1), "zeros": np.asarray([0])}
    tables = {"table": np.arange(20, dtype=np.float32), "w": np.ones((1, 1, window), np.float32)}
    return model(nodes, [value("x", (1, 1, "T"))], initializers=arrays | tables)


def test_a_window_never_fixes_a_length_that_longer_ones_are_ruled_out_for(caplog: pytest.LogCaptureFixture) -> None:
    """Only lengths from 16 to 20 fit: the window takes 16, and also all longer ones."""
    proto = _positions(16)
    graph = engine.load_onnx(proto)
    assert list(graph.symbols) == ["T"] and not caplog.records
    exe = engine.compile(graph)
    for time in (16, 18, 20):
        feeds = {"x": np.full((1, 1, time), 0.5, np.float32)}
        _check(exe.run(dict(feeds)), run_onnxruntime(proto, feeds))


def test_an_error_says_which_lengths_were_made_up() -> None:
    weights = {"w": np.ones((2, 3), np.float32)}
    proto = model([node("Conv", ["x", "w"])], [value("x", ("n", "c", "t"))], initializers=weights)
    with pytest.raises(ModelError) as refused:
        engine.load_onnx(proto)
    assert "node 'Conv_0' (Conv)" in str(refused.value)
    assert "for instance n = 192, c = 704, t = 1216 (invented)" in str(refused.value)
    assert "shapes= or --shape gives them numbers" in str(refused.value)


def test_a_length_that_the_model_fixes_is_logged_with_its_operator(caplog: pytest.LogCaptureFixture) -> None:
    proto = model(
        [node("MatMul", ["x", "w"])], [value("x", ("n", "k"))], initializers={"w": np.ones((7, 3), np.float32)}
    )
    assert str(engine.load_onnx(proto).inputs["x"].spec) == "float32[n,7]"
    (record,) = caplog.records
    assert record.getMessage() == "the open dimension k is 7: matmul takes no other length"
