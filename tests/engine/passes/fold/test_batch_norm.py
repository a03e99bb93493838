"""Batch normalization folded into weights: outputs stay within 1e-5, and as many are folded as Glow folds.

In random networks sums may cancel, so there the tolerance is looser; an error of the rule would be a large one.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph, Var
from engine.passes import verify
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from engine.zoo import NETWORKS
from engine.zoo.classifier import begin
from engine.zoo.layers import convolution, normalization
from engine.zoo.mobilenet import FIRST, LAST, STAGES
from ops.tensor.spec import Array, Shape
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.pass_checks import check_near, count, difference
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned


def _check(graph: Graph) -> Graph:
    folded = FOLD_BATCH_NORM(graph)
    verify(graph, folded)
    feeds = random_feeds(graph)
    check_near(run_unplanned(folded, feeds), run_unplanned(graph, feeds))
    return folded


@settings(max_examples=50)
@given(layered_graphs())
def test_fold_batch_norm_keeps_outputs_and_is_idempotent(graph: Graph) -> None:
    folded = _check(graph)
    assert FOLD_BATCH_NORM(folded) is folded
    assert len(folded.operators) <= len(graph.operators)


def _norm(channels: int) -> list[Array]:
    rng = np.random.default_rng(1)
    scale, bias, mean = rng.standard_normal((3, channels)).astype(np.float32)
    return [scale, bias, mean, rng.uniform(0.5, 2, channels).astype(np.float32)]


def test_fold_batch_norm_text_before_and_after() -> None:
    graph = Graph("small")
    x = graph.input("x", (3, 8))
    w, extra = graph.constant(np.ones((8, 4), np.float32), "w"), graph.constant(np.arange(4, dtype=np.float32), "extra")
    statistics = [graph.constant(a, name) for a, name in zip(_norm(4), ("scale", "bias", "mean", "var"), strict=True)]
    graph.output(ops.relu(ops.batch_norm(x @ w + extra, *statistics)), "y")
    assert graph.text().splitlines() == [
        "graph small",
        "  input    %x: float32[3,8]",
        "  constant %w: float32[8,4]",
        "  constant %extra: float32[4]",
        "  constant %scale: float32[4]",
        "  constant %bias: float32[4]",
        "  constant %mean: float32[4]",
        "  constant %var: float32[4]",
        "  %matmul_0: float32[3,4] = matmul(%x, %w)",
        "  %add_0: float32[3,4] = add(%matmul_0, %extra)",
        "  %batch_norm_0: float32[3,4] = batch_norm(%add_0, %scale, %bias, %mean, %var) epsilon=1e-05",
        "  %relu_0: float32[3,4] = relu(%batch_norm_0)",
        "  output   y = %relu_0",
    ]
    assert FOLD_BATCH_NORM(graph).text().splitlines() == [
        "graph small",
        "  input    %x: float32[3,8]",
        "  constant %w: float32[8,4]",
        "  constant %constant_0: float32[4]",
        "  %batch_norm_0: float32[3,4] = gemm(%x, %w, %constant_0) alpha=1.0 beta=1.0 trans_a=False trans_b=False",
        "  %relu_0: float32[3,4] = relu(%batch_norm_0)",
        "  output   y = %relu_0",
    ]


def test_a_transposed_convolution_in_groups_is_scaled_group_by_group() -> None:
    graph, rng = Graph("deconv"), np.random.default_rng(0)
    x = graph.input("x", (2, 6, 5, 4))
    w = rng.standard_normal((6, 2, 3, 3)).astype(np.float32)
    y = ops.conv_transpose(x, w, rng.standard_normal(4).astype(np.float32), group=2, strides=2)
    graph.output(ops.batch_norm(y, *_norm(4)), "y")
    assert count(_check(graph)) == {"conv_transpose": 1}


def test_a_product_of_matrices_gets_a_bias() -> None:
    graph = Graph("product")
    x = graph.input("x", (5, 6))
    graph.output(ops.batch_norm(x @ np.ones((6, 4), np.float32), *_norm(4)), "y")
    assert count(_check(graph)) == {"gemm": 1}


@pytest.mark.parametrize("trans_b", [False, True])
def test_a_gemm_keeps_its_factors(trans_b: bool) -> None:
    graph, rng = Graph("scaled"), np.random.default_rng(4)
    w, bias = rng.standard_normal((4, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    y = ops.gemm(graph.input("x", (5, 4)), w, bias, alpha=2.0, beta=0.5, trans_b=trans_b)
    graph.output(ops.batch_norm(y, *_norm(4)), "y")
    assert count(_check(graph)) == {"gemm": 1}


@pytest.mark.parametrize("shape", [(), (4, 1, 1), (1, 4, 1, 1)])
@pytest.mark.parametrize("function", [ops.add, ops.sub, ops.mul, ops.div])
def test_arithmetic_with_a_constant_a_channel_is_folded(function: Callable[[Var, Array], Var], shape: Shape) -> None:
    graph, rng = Graph("arithmetic"), np.random.default_rng(3)
    x, array = graph.input("x", (2, 3, 6, 5)), rng.uniform(1, 3, shape).astype(np.float32)
    w, bias = rng.standard_normal((4, 3, 3, 3)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    graph.output(function(ops.conv(x, w, bias), array), "y")
    assert count(_check(graph)) == {"conv": 1}


@pytest.mark.parametrize(("function", "left"), [(ops.add, 0), (ops.mul, 0), (ops.sub, 1), (ops.div, 1)])
def test_a_constant_that_stands_first_is_folded_where_order_does_not_matter(
    function: Callable[[Var, Var], Var], left: int
) -> None:
    graph = Graph("swapped")
    x, three = graph.input("x", (2, 3, 6, 5)), graph.constant(np.array(3, np.float32))
    graph.output(function(three, ops.conv(x, np.ones((4, 3, 3, 3), np.float32))), "y")
    assert len(_check(graph).operators) == 1 + left


def test_fold_batch_norm_keeps_values_that_others_read() -> None:
    graph = Graph("shared")
    x = graph.input("x", (1, 3, 8, 8))
    y = ops.conv(x, np.ones((4, 3, 3, 3), np.float32))
    graph.output(ops.batch_norm(y, *_norm(4)), "y")
    graph.output(y, "z")
    assert FOLD_BATCH_NORM(graph) is graph


def test_weights_that_are_fed_and_numbers_that_are_not_finite_stay() -> None:
    graph = Graph("fed")
    x, w = graph.input("x", (1, 3, 8, 8)), graph.input("w", (4, 3, 3, 3))
    graph.output(ops.batch_norm(ops.conv(x, w), *_norm(4)), "y")
    scale, bias, mean, _ = _norm(4)
    below = ops.batch_norm(ops.conv(x, np.ones((4, 3, 3, 3), np.float32)), scale, bias, mean, -np.ones(4, np.float32))
    graph.output(below, "z")
    assert FOLD_BATCH_NORM(graph) is graph


_FACTORS = [
    ("float16", 200.0, 100.0, 1e-2, 1e-3),  # 800 before, infinite after
    ("float32", 1e20, 1e20, 1.0, 1e-10),
    ("float64", 1e200, 1e200, 1.0, 1e-200),
    ("float16", 1e-3, 1e-3, 1e4, 5e4),  # 2000 before, 0 after
    ("float32", 1e-30, 1e-12, 1.0, 1e30),
]
"""Dtype, weights, scale, variance, input."""


@pytest.mark.parametrize(("dtype", "weight", "scale", "var", "fed"), _FACTORS)
def test_weights_that_would_overflow_or_vanish_stay(
    dtype: str, weight: float, scale: float, var: float, fed: float
) -> None:
    graph, one, none = Graph("extreme"), np.ones(4, dtype), np.zeros(4, dtype)
    x = graph.input("x", (1, 4, 3, 3), dtype)
    scales = one.copy()
    scales[1] = scale  # one channel is enough
    y = ops.conv(x, np.full((4, 4, 1, 1), weight, dtype))
    graph.output(ops.batch_norm(y, scales, none, none, np.full(4, var, dtype), epsilon=0.0), "y")
    folded = FOLD_BATCH_NORM(graph)
    assert folded is graph
    output = run_unplanned(engine.optimise(graph, 2), {"x": np.full((1, 4, 3, 3), fed, dtype)})["y"]
    assert np.isfinite(output[:, 1]).all() and output[:, 1].all()


def test_a_bias_that_would_overflow_stays() -> None:
    graph = Graph("extreme")
    x, w = graph.input("x", (1, 4, 3, 3), "float16"), np.ones((4, 4, 1, 1), np.float16)
    graph.output(ops.conv(x, w, np.full(4, 6e4, np.float16)) * np.full((), 2, np.float16), "y")
    assert FOLD_BATCH_NORM(graph) is graph


def test_small_weights_beside_large_ones_and_dead_channels_do_not_matter() -> None:
    """A channel is as exact as its largest weight; where that has few bits already, none are lost."""
    graph, w = Graph("small"), np.ones((3, 4, 1, 1), np.float32)
    w[0, 1], w[1], w[2] = 1e-38, 0, 1e-40
    graph.output(ops.conv(graph.input("x", (1, 4, 3, 3)), w) * np.full((), 0.25, np.float32), "y")
    assert count(_check(graph)) == {"conv": 1}


LAYERS: dict[str, tuple[Shape, Callable[[Var, Array], Var]]] = {
    "conv": ((6, 4, 1, 1), ops.conv),
    "conv_transpose": ((4, 3, 1, 1), lambda x, w: ops.conv_transpose(x, w, group=2)),
    "gemm": ((4, 6), ops.gemm),
    "gemm, transposed": ((6, 4), lambda x, w: ops.gemm(x, w, trans_b=True)),
    "matmul": ((2, 4, 6), ops.matmul),
}
_PLACES = {"conv": (4,), "conv_transpose": (slice(2, 4), 1), "gemm, transposed": (4,)}
"""Where the weights of channel 4 of 6 stand; last, if not told."""


@pytest.mark.parametrize("layer", LAYERS)
def test_the_weights_of_each_channel_are_looked_at(layer: str) -> None:
    """The weights of channel 4 are large; what makes them infinite stays, and in other channels it would not."""
    shape, make = LAYERS[layer]
    weights = np.ones(shape, np.float16)
    weights[_PLACES.get(layer, (..., 4))] = 1000
    graphs = []
    for channel in (4, 3):
        factor = np.ones(6, np.float16)
        factor[channel] = 1000
        graph = Graph(layer)
        x = graph.input("x", (1, 4, 3, 3) if len(shape) == 4 else (2, 3, 4)[3 - len(shape) :], "float16")
        graph.output(make(x, weights) * factor.reshape((6, 1, 1) if len(shape) == 4 else (6,)), "y")
        graphs.append(graph)
    assert [FOLD_BATCH_NORM(graph) is graph for graph in graphs] == [True, False]


def test_an_addend_that_counts_nothing_stays_uncounted() -> None:
    graph = Graph("beta")
    x, addend = graph.input("x", (2, 2)), np.full((2, 2), np.nan, np.float32)
    graph.output(ops.gemm(x, np.eye(2, dtype=np.float32), addend, beta=0.0) * np.full((), 2, np.float32), "y")
    assert count(_check(graph)) == {"gemm": 1}


def test_weights_that_others_read_are_not_copied_unless_they_are_small() -> None:
    for size, left in ((256, 40), (4, 20)):
        graph, total = Graph("shared"), size * size * 4
        x, w = graph.input("x", (2, size)), graph.constant(np.ones((size, size), np.float32), "w")
        shifted = [x + graph.constant(np.full((2, size), i, np.float32)) for i in range(20)]
        graph.output(ops.concat([v @ w * np.full((), i + 2, np.float32) for i, v in enumerate(shifted)], 0), "y")
        folded = FOLD_BATCH_NORM(graph)
        assert count(folded)["matmul"] + count(folded)["mul"] == left
        assert sum(a.size == size * size for a in folded.constants.values()) == (1 if total > 1 << 16 else 20)


def test_a_shift_alone_leaves_the_weights_where_they_are() -> None:
    graph = Graph("shifted")
    w = graph.constant(np.full((8, 4), 0.3, np.float32), "w")
    graph.output(graph.input("x", (3, 8)) @ w + np.arange(4, dtype=np.float32), "y")
    folded = _check(graph)
    assert count(folded) == {"gemm": 1}
    assert any(entry is graph.constants.entries[w] for entry in folded.constants.entries.values())


@pytest.mark.parametrize(("name", "layers"), [("resnet18", 20), ("mobilenet_v2", 52)])
def test_every_normalization_of_a_network_is_folded(name: str, layers: int) -> None:
    graph = NETWORKS[name](image=64)
    folded = FOLD_BATCH_NORM(graph)
    assert (count(graph)["batch_norm"], count(folded)["batch_norm"], count(folded)["conv"]) == (layers, 0, layers)
    feeds = random_feeds(graph)
    assert (
        difference(
            engine.compile(folded, optimise=0).run(feeds)["y"], engine.compile(graph, optimise=0).run(feeds)["y"]
        )
        < 1e-5
    )


@pytest.mark.slow
def test_resnet152_is_folded_whole() -> None:
    graph = NETWORKS["resnet152"]()
    folded = FOLD_BATCH_NORM(graph)
    assert (count(graph)["batch_norm"], count(folded)["batch_norm"], count(folded)["conv"]) == (155, 0, 155)
    feeds = random_feeds(graph)
    assert (
        difference(
            engine.compile(folded, optimise=0).run(feeds)["y"], engine.compile(graph, optimise=0).run(feeds)["y"]
        )
        < 1e-5
    )


def _mobilenet_of_the_onnx_zoo() -> Graph:
    """Returns MobileNetV2 in 54 convolutions: the first block is as deep as the others, the classes are one of 1x1."""
    net = begin("mobilenet_v2 of the ONNX model zoo", 1, 64, 0, False)

    def layer(x: Var, channels: int, kernel: int, stride: int = 1, group: int = 1) -> Var:
        return normalization(convolution(x, channels, kernel, net.weights, stride=stride, group=group), net.weights)

    x = ops.clip(layer(net.x, FIRST, 3, 2), 0.0, 6.0)
    for stage in STAGES:
        for number in range(stage.blocks):
            wide, stride = x.shape[1] * stage.expansion, stage.stride if number == 0 else 1
            y = ops.clip(layer(x, wide, 1), 0.0, 6.0)
            y = layer(ops.clip(layer(y, wide, 3, stride, wide), 0.0, 6.0), stage.channels, 1)
            x = y + x if x.shape == y.shape else y
    x = ops.global_average_pool(ops.clip(layer(x, LAST, 1), 0.0, 6.0))
    net.graph.output(convolution(x, 1000, 1, net.weights), "y")
    return net.graph


def test_glow_folds_53_of_54_convolutions_of_mobilenet() -> None:
    graph = _mobilenet_of_the_onnx_zoo()
    folded = FOLD_BATCH_NORM(graph)
    assert (count(graph)["conv"], count(graph)["batch_norm"]) == (54, 53)
    assert (count(folded)["conv"], count(folded)["batch_norm"]) == (54, 0)
    feeds = random_feeds(graph)
    assert (
        difference(
            engine.compile(folded, optimise=0).run(feeds)["y"], engine.compile(graph, optimise=0).run(feeds)["y"]
        )
        < 1e-5
    )
