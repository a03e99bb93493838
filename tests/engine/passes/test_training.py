"""A training graph behind passes learns the same: parameters, their updates and what the backward pass reads stay."""

import numpy as np
import pytest

import engine
import ops
from engine import SGD, Adam, Graph
from engine.passes import verify
from engine.passes.pipeline import CLEANUP, RECOGNITION
from engine.training.training import Optimiser
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.graphs.unplanned_run import assert_same

OPTIMISERS: dict[str, Optimiser] = {"sgd": SGD(0.1, momentum=0.9), "adam": Adam(0.01)}


def _perceptron(optimiser: Optimiser) -> Graph:
    """Returns two layers, with Gelu and a normalisation in pieces between them."""
    rng, graph = np.random.default_rng(0), Graph("perceptron")
    x, target = graph.input("x", (4, 6)), graph.input("target", (4, 3))
    first, second = (
        graph.parameter((0.3 * rng.standard_normal(shape)).astype(np.float32), name)
        for name, shape in (("first", (6, 6)), ("second", (6, 3)))
    )
    hidden = ops.identity(x) @ first
    active = hidden * 0.5 * (1.0 + ops.erf(hidden / np.sqrt(2, dtype=np.float32)))
    centred = active - ops.reduce_mean(active, (-1,))
    normal = centred / ops.sqrt(ops.reduce_mean(centred * centred, (-1,)) + 1e-5)
    error = (normal @ second - target) * 1.0
    loss = ops.reduce_mean(error * error, None, keepdims=False)
    graph.output(loss, "loss")
    engine.train_step(graph, loss, optimiser)
    return graph


def _losses(graph: Graph) -> list[dict[str, Array]]:
    rng = np.random.default_rng(1)
    run = engine.compile(graph, optimise=0).run
    feeds = {n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in graph.inputs.items()}
    return [run(feeds) for _ in range(8)]


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_training_behind_level_1_learns_the_same_bits(optimiser: str) -> None:
    graph = _perceptron(OPTIMISERS[optimiser])
    optimised = engine.optimise(graph, 1)
    assert len(optimised.operators) < len(graph.operators)
    for before, after in zip(_losses(graph), _losses(optimised), strict=True):
        assert_same(after, before)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_training_behind_level_2_learns_almost_the_same(optimiser: str) -> None:
    graph = _perceptron(OPTIMISERS[optimiser])
    before, after = _losses(graph), _losses(engine.optimise(graph, 2))
    np.testing.assert_allclose([r["loss"] for r in after], [r["loss"] for r in before], rtol=1e-4)
    assert after[-1]["loss"] < after[0]["loss"]


def test_each_pass_carries_parameters_over() -> None:
    graph = _perceptron(OPTIMISERS["adam"])
    for each in (*CLEANUP, *RECOGNITION):
        after = each(graph)
        verify(graph, after)
        assert each(after) is after
        assert {p.name: v.spec for p, v in after.updates.items()} == {p.name: v.spec for p, v in graph.updates.items()}


def test_passes_keep_values_that_the_backward_pass_reads() -> None:
    names = schema_names(engine.optimise(_perceptron(OPTIMISERS["sgd"]), 2))
    assert "gelu" not in names and "layer_norm" not in names
