"""Whole networks: their gradients are PyTorch's, and a small one learns to read digits out of one arena."""

import numpy as np
import pytest

import engine
from engine import Graph
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.ops.kernel_checks import scratch_bytes
from tests.helpers.torch.torch_gradients import torch_gradients, widened
from tools.train_digits import accuracy, digits, train, trainer

IMAGE = {"inception_v3": 107, "alexnet": 79, "squeezenet": 65, "densenet121": 64}
"""Sides of small images; 48 for the others. There DenseNet would normalize two numbers and amplify rounding."""
QUICK = ("resnet18", "squeezenet", "minilm")


def _built(name: str) -> Graph:
    options = NETWORKS[name].options
    asked: dict[str, int] = {"batch": 2, "training": True}
    if "image" in options:
        asked["image"] = IMAGE.get(name, 48)
    if "sequence" in options:
        asked["sequence"] = 9
    if "width" in options:
        asked["width"] = 8
    return widened(NETWORKS[name](**asked))


def _feeds(graph: Graph, seed: int) -> dict[str, Array]:
    rng, feeds = np.random.default_rng(seed), random_feeds(graph, seed)
    for name, var in graph.inputs.items():
        if var.dtype.kind in "iu":
            feeds[name] = rng.integers(0, 2, var.shape).astype(var.dtype)
    return feeds


def _check_gradients(graph: Graph, feeds: dict[str, Array]) -> None:
    """Checks every parameter's, to 1e-5 of its largest element; in float64, where only a wrong rule can differ.

    Some are zero but for rounding (of what a softmax or a normalization takes away), next to what others have.
    """
    loss, wanted = torch_gradients(graph, "loss", feeds)
    trained = [v for v, p in graph.parameters.items() if p.trainable]
    gradients = engine.gradients(graph.outputs["loss"], trained)
    for var, gradient in zip(trained, gradients, strict=True):
        graph.output(gradient, f"{var.name}/gradient")
    outputs = engine.compile(graph, optimise=0).run(feeds)
    np.testing.assert_allclose(
        outputs["loss"], loss, rtol=1e-6
    )  # normalizing two numbers makes rounding 1e7 times larger
    assert set(wanted) == {v.name for v in trained}
    largest = max(float(np.abs(theirs).max()) for theirs in wanted.values())
    for name, theirs in wanted.items():
        scale = max(float(np.abs(theirs).max()), 1e-6 * largest)
        np.testing.assert_allclose(outputs[f"{name}/gradient"], theirs, rtol=0, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize("name", QUICK)
def test_gradients_of_a_network_are_pytorchs(name: str) -> None:
    graph = _built(name)
    _check_gradients(graph, _feeds(graph, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, net in NETWORKS.items() if "training" in net.options and n not in QUICK])
def test_gradients_of_all_networks_are_pytorchs(name: str) -> None:
    graph = _built(name)
    _check_gradients(graph, _feeds(graph, 1))


def test_a_small_network_learns_digits_out_of_one_arena() -> None:
    learned, tested = digits()
    exe = engine.compile(trainer(64), optimise=0)
    address = exe.executor.arena.ctypes.data  # type: ignore[union-attr]
    losses = [train(exe, learned, 64, epoch) for epoch in range(12)]
    assert losses[-1] < 0.1 * losses[0]
    assert accuracy(exe, tested) > 0.97
    assert exe.executor.arena.ctypes.data == address  # type: ignore[union-attr]


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
