"""All passes on the networks of the onnx package, with seeded weights, against onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest

import engine
from engine.api import PlanOptions
from engine.cli.passes import compare_passes
from engine.onnx.seeded import seed_weights
from tests.helpers.onnx.small_models import run_onnxruntime

LIGHT = Path(onnx.backend.test.__file__).parent / "data" / "light"
QUICK = ("squeezenet", "shufflenet")
SLOW = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512")


def _check(name: str) -> None:
    model = seed_weights(onnx.load(LIGHT / f"light_{name}.onnx"))
    graph = engine.load_onnx(model)
    rng = np.random.default_rng(5)
    feeds = {n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in graph.inputs.items()}
    (wanted,) = run_onnxruntime(model, feeds)
    for level in (1, 2, 3):
        after = engine.optimise(graph, level)
        assert len(after.operators) <= len(graph.operators)
        (ours,) = engine.compile(after).run(feeds).values()
        assert np.abs(ours - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("name", QUICK)
def test_a_network_agrees_with_onnxruntime_behind_all_passes(name: str) -> None:
    _check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_larger_network_agrees_with_onnxruntime_behind_all_passes(name: str) -> None:
    _check(name)


def test_compare_passes_tells_each_pass() -> None:
    graph = engine.load_onnx(seed_weights(onnx.load(LIGHT / "light_squeezenet.onnx")))
    feeds = {n: np.ones(v.shape, v.dtype) for n, v in graph.inputs.items()}
    comparison = compare_passes(graph, feeds, 2, runs=1, options=PlanOptions())
    first, *rest = comparison.rows
    assert (first.by, first.operators, first.difference) == ("as given", len(graph.operators), 0)
    assert [row.before for row in rest] == [row.operators for row in comparison.rows[:-1]]
    assert comparison.outputs_equal
    assert all(row.arena_bytes > 0 and row.seconds > 0 for row in comparison.rows)
