"""The image networks: sizes as published, numbers that stay sane, weights that graphs share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.graph.graph import Graph
from engine.text.errors import OptionError
from engine.zoo import IMAGE_NETWORKS
from engine.zoo.random_wired import NEIGHBOURS, NODES, wired
from engine.zoo.weights import drawn
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_modes, run_unplanned

LEARNED = {"conv": 2, "conv_transpose": 2, "gemm": 2, "batch_norm": 2, "mul": 1}
"""Inputs behind the data that training finds; the statistics of a normalization are none."""
PUBLISHED = {
    "alexnet": (61_100_840, 714_188_480, 8),
    "vgg16": (138_357_544, 15_470_264_320, 16),
    "vgg19": (143_667_240, 19_632_062_464, 19),
    "resnet18": (11_689_512, 1_814_073_344, 21),
    "resnet50": (25_557_032, 4_089_184_256, 54),
    "resnet152": (60_192_808, 11_513_626_624, 156),
    "inception_v3": (23_834_568, 5_713_216_096, 95),
    "mobilenet_v1": (4_231_976, 568_740_352, 28),
    "mobilenet_v2": (3_504_872, 300_774_272, 53),
    "densenet121": (7_978_856, 2_834_161_664, 121),
    "squeezenet": (1_235_496, 349_151_936, 26),
}
"""Parameters, multiplications of convolutions and linear layers for one image, and how many layers these are.

Parameters and multiplications are those that torchvision tells of its models (inception_v3 there has an auxiliary
classifier beside them), for MobileNet those of Keras and 569 million in its paper.
"""
COUNTED = {"inception_bn": 11_285_224, "unet": 31_037_698, "random_wired": 5_564_645}
"""Parameters: with the 10,016 biases of MXNet's convolutions 11,295,240; those of milesial's Pytorch-UNet for two
classes; 5.6 million in the paper.
"""


IMAGES = dict.fromkeys(IMAGE_NETWORKS, 32) | {"alexnet": 63, "inception_v3": 75}
"""Small images that each network takes."""
MODERN = tuple(name for name in IMAGE_NETWORKS if name not in ("alexnet", "vgg16", "vgg19"))
"""Those whose weights do not depend on the size of the image."""


def parameters(graph: Graph) -> int:
    used = ((op, LEARNED.get(op.schema.name, 0)) for op in graph.operators)
    return sum(v.spec.size for op, count in used for v in op.inputs[1 : 1 + count])


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_multiplications_and_layers_are_those_of_the_papers(name: str) -> None:
    graph = IMAGE_NETWORKS[name]()
    layers = [op for op in graph.operators if op.schema.name in ("conv", "gemm")]
    products = sum(op.schema.cost(op.signature).flops for op in layers) // 2
    assert (parameters(graph), products, len(layers)) == PUBLISHED[name]


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", COUNTED)
def test_parameter_counts_of_other_image_networks_equal_known_ones(name: str) -> None:
    assert parameters(IMAGE_NETWORKS[name]()) == COUNTED[name]


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_names_and_shapes_are_those_that_are_told(name: str) -> None:
    graph = IMAGE_NETWORKS[name](2, IMAGES[name])
    assert name in PUBLISHED or name in COUNTED
    assert graph.name == name
    assert {n: v.shape for n, v in graph.inputs.items()} == {"x": (2, 3, IMAGES[name], IMAGES[name])}
    assert {n: v.shape for n, v in graph.outputs.items()} == {"y": (2, 2, 32, 32) if name == "unet" else (2, 1000)}


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_a_batch_may_be_a_name(name: str) -> None:
    graph = IMAGE_NETWORKS[name]("batch", IMAGES[name])
    assert str(graph.outputs["y"].spec).startswith("float32[batch,")
    same = IMAGE_NETWORKS[name](2, IMAGES[name])
    assert [op.schema for op in graph.operators] == [op.schema for op in same.operators]


@pytest.mark.slow
@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", ["vgg16", "resnet50", "mobilenet_v2"])
def test_bytes_of_activations_grow_with_the_batch(name: str) -> None:
    one, many = (engine.make_plan(IMAGE_NETWORKS[name](batch)) for batch in (1, 128))
    workspace = max(p.report().workspace_bytes for p in (one, many))
    assert 128 * (one.arena_bytes - workspace) <= many.arena_bytes <= 128 * one.arena_bytes
    for plan in (one, many):
        assert plan.plan.lower_bound == plan.arena_bytes
    assert many.weights_bytes == one.weights_bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "batch", "image"),
    [
        ("vgg16", 1, 32),
        ("resnet18", 1, 64),
        ("resnet50", 2, 40),
        pytest.param("inception_bn", 2, 48, marks=pytest.mark.slow),
        pytest.param("inception_v3", 1, 75, marks=pytest.mark.slow),
        ("mobilenet_v1", 2, 40),
        ("mobilenet_v2", 3, 64),
        pytest.param("densenet121", 1, 64, marks=pytest.mark.slow),
        ("squeezenet", 2, 48),
        pytest.param("random_wired", 1, 64, marks=pytest.mark.slow),
    ],
)
def test_planned_runs_are_those_without_a_plan_and_numbers_stay_sane(name: str, batch: int, image: int) -> None:
    graph = IMAGE_NETWORKS[name](batch, image, seed=3)
    feeds = random_feeds(graph, seed=1)
    plain, y = run_unplanned(graph, feeds), run_modes(graph, feeds)["y"]
    # passes, and kernels of packed weights, add in another order
    assert_same(engine.compile(graph, prepack=False, optimise=0).run(feeds), plain)
    assert np.abs(y - plain["y"]).max() <= 1e-4 * np.abs(y).max()
    assert y.shape == (batch, 1000)
    assert 0.1 < y.std() < 20 and abs(y.mean()) < y.std()


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 4), image=st.integers(32, 80), seed=st.integers(0, 2**32))
def test_a_batch_is_its_images_one_by_one(batch: int, image: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((batch, 3, image, image), dtype=np.float32)
    one, many = (engine.compile(IMAGE_NETWORKS["mobilenet_v2"](n, image)) for n in (1, batch))
    together = many(x=x)["y"]
    alone = np.concatenate([one(x=x[i : i + 1])["y"] for i in range(batch)])
    assert np.abs(together - alone).max() <= 1e-4 * np.abs(alone).max()


@settings(max_examples=25)
@given(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3), st.floats(0.01, 9), st.floats(-9, 9))
def test_zoo_weights_have_the_scale_and_mean_asked_for(seed: int, dims: list[int], scale: float, mean: float) -> None:
    array = drawn(seed, 0, tuple(dims), scale, mean)
    assert array.shape == tuple(dims) and array.dtype == np.float32 and not array.flags.writeable
    assert (np.abs(array - mean) <= np.sqrt(3) * scale + 1e-5 * (1 + abs(mean))).all()


def test_zoo_weights_have_the_deviation_asked_for() -> None:
    array = drawn(7, 0, (100_000,), 0.3, 2.0)
    assert abs(array.std() - 0.3) < 0.003 and abs(array.mean() - 2) < 0.003


def test_graphs_of_one_seed_share_their_weights_and_those_of_another_do_not() -> None:
    def arrays(batch: int, seed: int) -> list[Array]:
        held = IMAGE_NETWORKS["mobilenet_v2"](batch, 32, seed).constants.values()
        return [a for a in held if a.ndim]  # bounds of ReLU6 are numbers

    one, many, other = arrays(1, 0), arrays(4, 0), arrays(1, 1)
    assert all(a is b for a, b in zip(one, many, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len({id(a) for a in one}) == len(one)


def test_weights_that_nobody_holds_are_drawn_again_alike() -> None:
    first = drawn(5, 2, (3, 4), 1.0).copy()
    assert np.array_equal(drawn(5, 2, (3, 4), 1.0), first)


def test_an_image_that_is_too_small_is_refused() -> None:
    with pytest.raises(OptionError, match="vgg16: image is an integer of at least 32, not 31"):
        IMAGE_NETWORKS["vgg16"](image=31)


@settings(max_examples=20)
@given(wiring=st.integers(0, 999), stage=st.integers(0, 3), nodes=st.integers(5, NODES))
def test_random_wiring_is_acyclic_seeded_and_has_an_edge_for_each_neighbour(
    wiring: int, stage: int, nodes: int
) -> None:
    edges = wired(wiring, stage, nodes)
    assert edges == wired(wiring, stage, nodes)
    assert all(i < node for node, inputs in enumerate(edges) for i in inputs)
    assert sum(map(len, edges)) == nodes * NEIGHBOURS // 2


def test_another_wiring_is_another_network() -> None:
    assert len({wired(wiring, 0) for wiring in range(20)}) == 20


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_images_of_full_size_run_as_planned(name: str) -> None:
    graph = IMAGE_NETWORKS[name]()
    assert 0.1 < run_modes(graph, random_feeds(graph))["y"].std() < 20
