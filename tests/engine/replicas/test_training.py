"""Replicas that share a batch train as one process does."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.graph.graph import Graph
from engine.replicas.training import train_parallel, tree_sum
from engine.text.errors import EngineError, FeedError, GraphError, OptionError
from ops.tensor.spec import Array

STEPS = 12


def network(batch: int) -> Graph:
    """Returns a small convolutional network of images of 8 x 8, with its loss."""
    graph, rng = Graph("digits"), np.random.default_rng(0)

    def weight(name: str, *shape: int) -> Any:
        return graph.parameter((rng.standard_normal(shape) * 0.2).astype(np.float32), name)

    x = graph.input("x", (batch, 1, 8, 8))
    x = ops.max_pool(ops.relu(ops.conv2d(x, weight("first", 8, 1, 3, 3), pads=1)), 2, strides=2)
    logits = ops.flatten(x) @ weight("last", 128, 10) + weight("bias", 10)
    graph.output(ops.softmax_cross_entropy(logits, graph.input("label", (batch,), "int64")), "loss")
    return graph


def batches() -> list[dict[str, Array]]:
    """Returns batches of 32 of scikit-learn's digits."""
    load = pytest.importorskip("sklearn.datasets").load_digits
    pixels, labels = load(return_X_y=True)
    images = (pixels / 16).reshape(-1, 1, 8, 8).astype(np.float32)
    return [{"x": images[i : i + 32], "label": labels[i : i + 32].astype(np.int64)} for i in range(0, 32 * STEPS, 32)]


def alone(optimiser: Any) -> tuple[list[float], dict[str, Array]]:
    """Returns the losses and the parameters of one process with whole batches."""
    graph = network(32)
    exe = engine.compile(engine.train_step(graph, graph.outputs["loss"], optimiser).graph)
    return [float(exe.run(batch)["loss"]) for batch in batches()], exe.parameters


def check_same(optimiser: Any, replicas: int, on: str) -> list[float]:
    """Checks that replicas train as one process does, within rounding; returns their losses."""
    losses, wanted = alone(optimiser)
    with train_parallel(network(32 // replicas), optimiser, workers=replicas, on=on) as training:
        ours = [training.step(batch) for batch in batches()]
        held = training.parameters
    assert ours == pytest.approx(losses, rel=1e-4)
    assert ours[-1] < ours[0]
    assert held.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(held[name], array, rtol=1e-3, atol=1e-5)
    return ours


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_shares_of_a_batch_train_as_the_whole(replicas: int) -> None:
    check_same(engine.SGD(0.1, momentum=0.9), replicas, "here")


def test_adam_keeps_its_state() -> None:
    check_same(engine.Adam(), 2, "here")


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 4])
def test_processes_train_as_one(replicas: int) -> None:
    optimiser = engine.SGD(0.1, momentum=0.9)
    assert check_same(optimiser, replicas, "processes") == check_same(optimiser, replicas, "here")


@pytest.mark.slow
def test_workers_that_are_killed_change_no_bit() -> None:
    optimiser, losses = engine.SGD(0.1), []
    with train_parallel(network(16), optimiser, workers=2) as training:
        for number, batch in enumerate(batches()):
            losses.append(training.step(batch))
            place: Any = training._place
            if number in (3, 7):
                living = [worker for worker in place._all if worker is not None]
                for pid in [*living[number % len(living)].pool._processes]:
                    os.kill(pid, signal.SIGKILL)
    with train_parallel(network(16), optimiser, workers=2, on="here") as training:
        assert [training.step(batch) for batch in batches()] == losses


@pytest.mark.slow
def test_a_cluster_trains_as_this_process_does(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.helpers.workers.cluster import cluster  # noqa: PLC0415 - it needs the package

    optimiser = engine.SGD(0.1, momentum=0.9)
    with cluster(tmp_path, 2) as started:
        assert check_same(optimiser, 2, started.on) == check_same(optimiser, 2, "here")


def test_sums_are_of_neighbours() -> None:
    assert tree_sum(["a", "b", "c", "d", "e"]) == "abcde"  # type: ignore[list-item]
    parts = [np.array([x], np.float32) for x in (1e8, 1.0, -1e8, 1.0)]
    assert tree_sum(parts) == (parts[0] + parts[1]) + (parts[2] + parts[3])


def _without_parameters() -> Graph:
    graph = Graph("fixed")
    graph.output(ops.reduce_mean(graph.input("x", (2, 2)), (0, 1)), "loss")
    return graph


def _changing_a_weight() -> Graph:
    graph = network(2)
    bias = next(v for v in graph.parameters if v.name == "bias")
    graph.assign(bias, bias + 1.0)
    return graph


@pytest.mark.parametrize(
    ("graph", "asked", "error", "says"),
    [
        (network(2), {"loss": "los"}, GraphError, "has no output 'los'"),
        (_without_parameters(), {}, GraphError, "no trainable parameter"),
        (_changing_a_weight(), {}, GraphError, "change 'bias', which the optimiser"),
        (network(2), {"optimiser": 3}, OptionError, "3 is no optimiser"),
        (network(2), {"workers": 0}, OptionError, "workers 0 is no integer from 1"),
        (network(2), {"on": "nowhere"}, OptionError, "no place to run tasks"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    graph: Graph, asked: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says), train_parallel(graph, **{"optimiser": engine.SGD(), **asked}):
        pass


def normalized(batch: int) -> Graph:
    """Returns a network that normalizes its input by the batch, with running statistics and a count of runs."""
    graph = Graph("normalized")
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    scale, bias = graph.parameter(ones, "scale"), graph.parameter(zeros, "bias")
    mean, variance = (graph.parameter(a, n, trainable=False) for a, n in ((zeros, "mean"), (ones, "variance")))
    y = ops.batch_norm_running(graph.input("x", (batch, 3, 2, 2)), scale, bias, mean, variance)
    runs = graph.parameter(np.zeros(1, np.int64), "runs", trainable=False)
    graph.assign(runs, runs + graph.constant(np.ones(1, np.int64)))
    graph.output(ops.mse_loss(y, graph.input("wanted", (batch, 3, 2, 2))), "loss")
    return graph


def images(number: int) -> list[dict[str, Array]]:
    """Returns batches of eight for it."""
    draw = np.random.default_rng(1)
    return [
        {name: draw.normal(size=(8, 3, 2, 2)).astype(np.float32) for name in ("x", "wanted")} for _ in range(number)
    ]


def trained(workers: int, number: int, on: str = "here") -> dict[str, Array]:
    """Returns the parameters after so many steps."""
    with train_parallel(normalized(8 // workers), engine.SGD(0.1), workers=workers, on=on) as training:
        for batch in images(number):
            training.step(batch)
        return training.parameters


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_running_statistics_are_the_means_of_those_of_the_shares(workers: int) -> None:
    mean, variance = np.zeros(3), np.ones(3)
    for batch in images(3):
        shares = np.split(batch["x"].astype(np.float64), workers)
        mean = 0.9 * mean + 0.1 * np.mean([share.mean((0, 2, 3)) for share in shares], 0)
        variance = 0.9 * variance + 0.1 * np.mean([share.var((0, 2, 3), ddof=1) for share in shares], 0)
    held = trained(workers, 3)
    np.testing.assert_allclose(held["mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(held["variance"], variance, rtol=1e-5)
    assert held["runs"] == 3


def test_one_worker_has_the_statistics_of_one_process_to_the_bit() -> None:
    graph = normalized(8)
    exe = engine.compile(engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.1)).graph)
    for batch in images(3):
        exe.run(batch)
    held = trained(1, 3)
    assert all(held[name].tobytes() == exe.parameters[name].tobytes() for name in ("mean", "variance", "runs"))


@pytest.mark.slow
def test_running_statistics_do_not_depend_on_where_workers_are() -> None:
    here, there = trained(2, 3), trained(2, 3, "processes")
    assert all(here[name].tobytes() == there[name].tobytes() for name in here)


def test_integers_that_shares_change_in_different_ways_are_told() -> None:
    graph = network(4)
    seen = graph.parameter(np.zeros(4, np.int64), "seen", trainable=False)
    graph.assign(seen, graph.inputs["label"] + graph.constant(np.zeros(4, np.int64)))
    batch = {"x": np.zeros((8, 1, 8, 8), np.float32), "label": np.arange(8)}
    with train_parallel(graph, engine.SGD(0.1), workers=2, on="here") as training:
        before = training.parameters
        with pytest.raises(GraphError, match="change 'seen' in different ways"):
            training.step(batch)
        assert all(np.array_equal(training.parameters[name], before[name]) for name in before)


def test_a_step_behind_the_block_starts_no_workers() -> None:
    with train_parallel(network(4), engine.SGD(), workers=2, on="here") as training:
        pass
    with pytest.raises(EngineError, match="has ended"):
        training.step({"x": np.zeros((8, 1, 8, 8), np.float32), "label": np.zeros(8, np.int64)})


def test_means_of_short_floats_do_not_overflow() -> None:
    graph = network(4)
    kept = graph.parameter(np.full(4, 60_000, np.float16), "kept", trainable=False)
    graph.assign(kept, ops.mul(kept, graph.constant(np.ones(4, np.float16))))
    batch = {"x": np.zeros((8, 1, 8, 8), np.float32), "label": np.zeros(8, np.int64)}
    with train_parallel(graph, engine.SGD(0.1), workers=2, on="here") as training:
        training.step(batch)
        assert training.parameters["kept"].tolist() == [60_000] * 4


def test_batches_that_cannot_be_cut_are_refused() -> None:
    with train_parallel(network(4), engine.SGD(), workers=2, on="here") as training:
        with pytest.raises(FeedError, match="2 shares have"):
            training.step({"x": np.zeros((4, 1, 8, 8), np.float32), "label": np.zeros(4, np.int64)})
        with pytest.raises(FeedError, match="the inputs are 'x', 'label'"):
            training.step({"x": np.zeros((8, 1, 8, 8), np.float32)})
