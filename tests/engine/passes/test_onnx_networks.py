"""All passes on the networks of the onnx package, with seeded weights, against onnxruntime."""

import numpy as np
import pytest

import engine
from engine.cli.passes import compare_passes
from engine.planning.options import PlanOptions
from tests.helpers.onnx.light_models import LIGHT_MODELS, light_graph, light_model
from tests.helpers.onnx.small_models import run_onnxruntime


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_a_network_agrees_with_onnxruntime_behind_all_passes(name: str) -> None:
    model = light_model(name)
    graph = engine.load_onnx(model)
    rng = np.random.default_rng(5)
    feeds = {n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in graph.inputs.items()}
    (wanted,) = run_onnxruntime(model, feeds)
    for level in (1, 2, 3):
        after = engine.optimise(graph, level)
        assert len(after.operators) <= len(graph.operators)
        (ours,) = engine.compile(after, optimise=0).run(feeds).values()
        assert np.abs(ours - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_compare_passes_tells_each_pass() -> None:
    graph = light_graph("squeezenet")
    feeds = {n: np.ones(v.shape, v.dtype) for n, v in graph.inputs.items()}
    comparison = compare_passes(graph, feeds, 2, runs=1, options=PlanOptions())
    first, *rest = comparison.rows
    assert (first.by, first.operators, first.difference) == ("as given", len(graph.operators), 0)
    assert [row.before for row in rest] == [row.operators for row in comparison.rows[:-1]]
    assert comparison.outputs_equal
    assert all(row.arena_bytes > 0 and row.seconds > 0 for row in comparison.rows)
