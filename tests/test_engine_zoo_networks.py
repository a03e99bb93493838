"""The image networks: sizes as published, numbers that stay sane, weights that graphs share."""

from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.graph import Graph
from engine.zoo import NETWORKS, weights
from engine.zoo.weights import Weights
from ops.errors import OpError
from ops.spec import Array
from tests.unplanned import assert_same, random_feeds, run_unplanned

LEARNED = {"conv": 2, "gemm": 2, "batch_norm": 2}
"""Inputs behind the data that training finds; the statistics of a normalization are none."""
PUBLISHED = {
    "vgg16": (138_357_544, 15_470_264_320, 16),
    "resnet50": (25_557_032, 4_089_184_256, 54),
    "mobilenet_v2": (3_504_872, 300_774_272, 53),
}
"""Parameters, multiplications of convolutions and linear layers for an image of 224, and how many layers these are.

The counts of torchvision's models: 138.36 M, 15.47 G; 25.56 M, 4.09 G (version 1.5); 3.50 M, 0.30 G.
"""


def _blank(_: object, shape: tuple[int, ...], *__: float) -> Array:
    array = np.empty(shape, np.float32)
    array.flags.writeable = False
    return array


@pytest.fixture
def without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of which no byte is touched."""
    monkeypatch.setattr(weights, "_LIVING", WeakValueDictionary())
    monkeypatch.setattr(weights, "_draw", _blank)


def parameters(graph: Graph) -> int:
    used = ((op, LEARNED.get(op.schema.name, 0)) for op in graph.operators)
    return sum(v.spec.size for op, count in used for v in op.inputs[1 : 1 + count])


def check_modes(graph: Graph, feeds: dict[str, Array]) -> Array:
    """One arena, reference counting and a watched arena give the same bits."""
    found = engine.compile(graph).run(feeds)
    assert_same(engine.compile(graph, mode="dynamic").run(feeds), found)
    assert_same(engine.compile(graph, debug="poison").run(feeds), found)
    return found["y"]


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_multiplications_and_layers_are_those_of_the_papers(name: str) -> None:
    graph = NETWORKS[name]()
    layers = [op for op in graph.operators if op.schema.name in ("conv", "gemm")]
    products = sum(op.schema.cost(op.signature).flops for op in layers) // 2
    assert (parameters(graph), products, len(layers)) == PUBLISHED[name]
    assert graph.name == name
    assert {n: v.shape for n, v in graph.inputs.items()} == {"x": (1, 3, 224, 224)}
    assert {n: v.shape for n, v in graph.outputs.items()} == {"y": (1, 1000)}


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", NETWORKS)
def test_a_batch_may_be_a_name(name: str) -> None:
    graph = NETWORKS[name]("batch", 64)
    assert str(graph.outputs["y"].spec) == "float32[batch,1000]"
    assert [op.schema for op in graph.operators] == [op.schema for op in NETWORKS[name](2, 64).operators]


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", NETWORKS)
def test_bytes_of_activations_grow_with_the_batch(name: str) -> None:
    one, many = (engine.make_plan(NETWORKS[name](batch)) for batch in (1, 128))
    workspace = max(p.report().workspace_bytes for p in (one, many))
    assert 128 * (one.arena_bytes - workspace) <= many.arena_bytes <= 128 * one.arena_bytes
    assert many.constants_bytes == one.constants_bytes
    for plan in (one, many):
        assert plan.plan.lower_bound == plan.arena_bytes


@pytest.mark.parametrize(("name", "batch", "image"), [("vgg16", 1, 32), ("resnet50", 2, 40), ("mobilenet_v2", 3, 64)])
def test_planned_runs_are_those_without_a_plan_and_numbers_stay_sane(name: str, batch: int, image: int) -> None:
    graph = NETWORKS[name](batch, image, seed=3)
    feeds = random_feeds(graph, seed=1)
    plain, y = run_unplanned(graph, feeds), check_modes(graph, feeds)
    assert_same(engine.compile(graph, pack=False).run(feeds), plain)  # kernels of packed weights add in another order
    assert np.abs(y - plain["y"]).max() <= 1e-4 * np.abs(y).max()
    assert y.shape == (batch, 1000)
    assert 0.1 < y.std() < 20 and abs(y.mean()) < y.std()


@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 4), image=st.integers(32, 80), seed=st.integers(0, 2**32))
def test_a_batch_is_its_images_one_by_one(batch: int, image: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((batch, 3, image, image), dtype=np.float32)
    one, many = (engine.compile(NETWORKS["mobilenet_v2"](n, image)) for n in (1, batch))
    together = many(x=x)["y"]
    alone = np.concatenate([one(x=x[i : i + 1])["y"] for i in range(batch)])
    assert np.abs(together - alone).max() <= 1e-4 * np.abs(alone).max()


@settings(max_examples=50)
@given(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3), st.floats(0.01, 9), st.floats(-9, 9))
def test_weights_have_the_scale_and_the_mean_that_are_asked_for(
    seed: int, dims: list[int], scale: float, mean: float
) -> None:
    array = Weights(seed).draw(*dims, scale=scale, mean=mean)
    assert array.shape == tuple(dims) and array.dtype == np.float32 and not array.flags.writeable
    assert (np.abs(array - mean) <= np.sqrt(3) * scale + 1e-5 * (1 + abs(mean))).all()


def test_many_weights_have_the_deviation_that_is_asked_for() -> None:
    array = Weights(7).draw(100_000, scale=0.3, mean=2.0)
    assert abs(array.std() - 0.3) < 0.003 and abs(array.mean() - 2) < 0.003


def test_graphs_of_one_seed_share_their_weights_and_those_of_another_do_not() -> None:
    def arrays(batch: int, seed: int) -> list[Array]:
        held = NETWORKS["mobilenet_v2"](batch, 32, seed).constants.values()
        return [a for a in held if a.ndim]  # bounds of ReLU6 are numbers

    one, many, other = arrays(1, 0), arrays(4, 0), arrays(1, 1)
    assert all(a is b for a, b in zip(one, many, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len({id(a) for a in one}) == len(one)


def test_weights_that_nobody_holds_are_drawn_again_alike() -> None:
    first = Weights(5).draw(3, 4, scale=1.0).copy()
    assert np.array_equal(Weights(5).draw(3, 4, scale=1.0), first)


def test_an_image_that_is_too_small_is_refused() -> None:
    with pytest.raises(OpError):
        NETWORKS["vgg16"](image=31)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_images_of_full_size_run_as_planned(name: str) -> None:
    graph = NETWORKS[name]()
    assert 0.1 < check_modes(graph, random_feeds(graph)).std() < 20
