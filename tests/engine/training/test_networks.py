"""Whole networks: their gradients are right, and a small one learns to read digits out of one arena."""

import numpy as np
import pytest

import engine
from tests.helpers.graphs.trained_networks import QUICK, network_feeds, network_gradients, trained_network
from tests.helpers.ops.kernel_checks import scratch_bytes
from tools.train_digits import accuracy, digits, train, trainer

_STEP = 1e-8
"""So small that no activation comes to the other side of its kink; rounding stays below 1e-5 of a gradient."""


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_gradients_of_a_network_agree_with_central_differences(name: str) -> None:
    """Each parameter is moved along a random direction of its own."""
    graph = trained_network(name)
    feeds = network_feeds(graph, 1)
    forward = engine.compile(graph, optimise=0)
    _, gradients = network_gradients(graph, feeds)
    rng = np.random.default_rng(2)
    largest = max(float(np.linalg.norm(gradient)) for gradient in gradients.values())
    for parameter, gradient in gradients.items():
        held = forward.parameters[parameter]
        along = rng.standard_normal(held.shape)
        sides = []
        for step in (_STEP, -_STEP):
            forward.load({parameter: held + step * along})
            sides.append(float(forward.run(feeds)["loss"]))
        forward.load({parameter: held})
        slope, close = (sides[0] - sides[1]) / (2 * _STEP), max(float(np.linalg.norm(gradient)), 1e-3 * largest)
        assert abs(float(np.sum(gradient * along)) - slope) <= 1e-5 * close, parameter


@pytest.mark.slow
def test_a_small_network_learns_digits_out_of_one_arena() -> None:
    learned, tested = digits()
    exe = engine.compile(trainer(64), optimise=0)
    address = exe.executor.arena.rows[0].ctypes.data  # type: ignore[union-attr]
    losses = [train(exe, learned, 64, epoch) for epoch in range(12)]
    assert losses[-1] < 0.1 * losses[0]
    assert accuracy(exe, tested) > 0.97
    assert exe.executor.arena.rows[0].ctypes.data == address  # type: ignore[union-attr]


@pytest.mark.slow
def test_static_dynamic_and_parallel_training_are_equal_to_the_bit() -> None:
    learned, _ = digits()
    graph = trainer(32)
    ways = {
        "static": engine.compile(graph, optimise=0),
        "dynamic": engine.compile(graph, mode="dynamic", optimise=0),
        "parallel": engine.compile(graph, parallel="exact", threads=2, optimise=0),
        "levels": engine.compile(graph, parallel="levels", threads=2, optimise=0),
        "poison": engine.compile(graph, debug="poison", optimise=0),
    }
    batches = list(learned.batches(32, seed=0))[:4]
    losses = {name: [exe.run(feeds)["loss"].tobytes() for feeds in batches] for name, exe in ways.items()}
    held = {name: {n: a.tobytes() for n, a in exe.parameters.items()} for name, exe in ways.items()}
    assert all(values == losses["static"] for values in losses.values())
    assert all(values == held["static"] for values in held.values())


def test_a_training_step_of_a_network_allocates_no_array() -> None:
    learned, _ = digits()
    exe = engine.compile(trainer(64), optimise=0)
    feeds, out = next(learned.batches(64, 0)), {"loss": np.empty((), np.float32)}
    assert scratch_bytes(lambda: exe.run(feeds, out=out)) < 16 << 10
