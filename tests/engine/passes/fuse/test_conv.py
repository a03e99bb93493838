"""Convolutions that take additions and activations: the same numbers in every mode, and fewer operators."""

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.passes import optimise
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from engine.passes.fuse.conv import FUSE_CONV
from engine.system.threads import limit_threads
from engine.zoo import NETWORKS
from ops.convolution.packed import has_avx512
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.pass_checks import check_near, check_pass, count, difference, schema_names
from tests.helpers.graphs.unplanned_run import EVERY_MODE, random_feeds, run_modes, run_unplanned

needs_avx512 = pytest.mark.skipif(
    not has_avx512(), reason="some convolutions are fused only where sums are in registers"
)


def _check_modes(graph: Graph) -> None:
    """Checks that every mode gives the bits of the static one; BLAS gives others on several threads."""
    with limit_threads(1):
        run_modes(graph, random_feeds(graph), EVERY_MODE)


@settings(max_examples=50)
@given(layered_graphs())
def test_fuse_conv_keeps_outputs_and_is_idempotent(graph: Graph) -> None:
    fused, feeds = check_pass(graph, FUSE_CONV), random_feeds(graph)
    check_near(engine.compile(fused, optimise=0).run(feeds), engine.compile(graph, optimise=0).run(feeds))


@settings(max_examples=30)
@given(layered_graphs())
def test_fused_conv_graphs_run_in_all_modes(graph: Graph) -> None:
    fused = optimise(graph, 2)
    _check_modes(fused)
    feeds = random_feeds(graph)
    check_near(engine.compile(fused, optimise=0).run(feeds), run_unplanned(graph, feeds))


def _block(name: str = "block") -> Graph:
    """Returns a block of ResNet18, without its normalizations."""
    graph, rng = Graph(name), np.random.default_rng(0)
    x = graph.input("x", (1, 32, 14, 14))
    w, v = (graph.constant(rng.standard_normal((32, 32, 3, 3)).astype(np.float32) / 10, n) for n in "wv")
    y = ops.relu(ops.conv(ops.relu(x), w, graph.constant(np.ones(32, np.float32), "b"), pads=1))
    graph.output(ops.relu(ops.conv(y, v, pads=1) + ops.relu(x)), "y")
    return graph


@needs_avx512
def test_fuse_conv_text_of_a_residual_block() -> None:
    attrs = "strides=(1,1) pads=(1,1,1,1) dilations=(1,1) auto_pad=NOTSET group=1 kernel_shape=()"
    relu = "activation=clip low=0.0 high=inf slope=1.0"
    assert FUSE_CONV(_block()).text().splitlines()[1:] == [
        "  input    %x: float32[1,32,14,14]",
        "  constant %w: float32[32,32,3,3]",
        "  constant %v: float32[32,32,3,3]",
        "  constant %b: float32[32]",
        "  constant %constant_0: float32[32]",
        "  %relu_0: float32[1,32,14,14] = relu(%x)",
        f"  %relu_1: float32[1,32,14,14] = fused_conv(%relu_0, %w, %b) {attrs} {relu}",
        "  %relu_2: float32[1,32,14,14] = relu(%x)",
        f"  %relu_3: float32[1,32,14,14] = fused_conv(%relu_1, %v, %constant_0, %relu_2) {attrs} {relu}",
        "  output   y = %relu_3",
    ]


@needs_avx512
def test_a_residual_addition_writes_into_the_operand_that_dies() -> None:
    graph = optimise(_block(), 2)
    assert schema_names(graph) == ["relu", "fused_conv", "fused_conv"]
    plan = engine.make_plan(graph, optimise=0)
    image, parts = 32 * 14 * 14 * 4, engine.make_plan(_block(), optimise=0)
    assert parts.report().arena_without_workspace == 3 * image
    assert plan.report().arena_without_workspace == 2 * image
    _check_modes(graph)


@needs_avx512
def test_the_later_of_two_convolutions_takes_the_addition() -> None:
    graph, w = Graph("two"), np.ones((32, 32, 1, 1), np.float32)
    x = graph.input("x", (1, 32, 8, 8))
    first, second = ops.conv(x, w), ops.conv(x, 2 * w)
    graph.output(first + second, "y")
    fused = FUSE_CONV(graph)
    assert schema_names(fused) == ["conv", "fused_conv"]
    assert fused.operators[1].inputs[3] is fused.operators[0].outputs[0]


def test_a_convolution_that_is_added_to_itself_is_computed_once() -> None:
    graph, w = Graph("twice"), np.ones((32, 32, 1, 1), np.float32)
    y = ops.conv(graph.input("x", (1, 32, 8, 8)), w)
    graph.output(y + y, "y")
    assert FUSE_CONV(graph) is graph


def test_fuse_conv_keeps_values_that_others_read_or_that_do_not_pay() -> None:
    graph, w = Graph("stays"), np.ones((4, 4, 3, 3), np.float32)
    x = graph.input("x", (1, 4, 8, 8))
    y = ops.conv(x, w, pads=1)
    graph.output(ops.relu(y), "y")
    graph.output(y, "z")
    graph.output(ops.conv(x, 2 * w, pads=1) + x, "few channels")
    graph.output(ops.relu(ops.tanh(ops.conv(x, 3 * w, pads=1))), "another in between")
    half = graph.input("half", (1, 4, 8, 8), "float16")
    graph.output(ops.relu(ops.conv(half, w.astype(np.float16))), "half")
    assert FUSE_CONV(graph) is graph


def test_fuse_conv_reads_a_parameter_before_its_update() -> None:
    graph = Graph("step")
    x, p = graph.input("x", (1, 4, 8, 8)), graph.parameter(np.ones((4, 4, 1, 1), np.float32), "p")
    y = ops.conv(x, p)
    graph.assign(p, p * 2)
    graph.output(ops.relu(y), "y")
    assert FUSE_CONV(graph) is graph


@needs_avx512
@pytest.mark.parametrize(("name", "fused", "rest"), [("resnet18", 17, 0), ("mobilenet_v2", 44, 1)])
def test_fuse_conv_keeps_outputs_of_networks(name: str, fused: int, rest: int) -> None:
    graph = NETWORKS[name](image=64)
    after = FUSE_CONV(FOLD_BATCH_NORM(graph))
    counted = count(after)
    assert (counted["fused_conv"], counted["relu"] + counted["clip"] + counted["add"]) == (fused, rest)
    feeds = random_feeds(graph)
    assert (
        difference(engine.compile(after, optimise=0).run(feeds)["y"], engine.compile(graph, optimise=0).run(feeds)["y"])
        < 1e-5
    )
