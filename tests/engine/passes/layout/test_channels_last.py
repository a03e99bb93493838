"""Channels last: the same numbers, few conversions, names that stay."""

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.passes import verify
from engine.passes.layout.channels_last import CHANNELS_LAST
from ops.tensor.spec import Array
from tests.helpers.graphs.image_networks import image_nets
from tests.helpers.graphs.pass_checks import check_near
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned


def _weights(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _names(graph: Graph) -> list[str]:
    return [op.schema.name for op in graph.operators]


@settings(max_examples=60)
@given(image_nets())
def test_channels_last_networks_compute_the_same(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    turned = CHANNELS_LAST(graph)
    verify(graph, turned)
    check_near(run_unplanned(turned, feeds), wanted)
    assert not {op.schema.name for op in CHANNELS_LAST(turned).operators} - {op.schema.name for op in turned.operators}


@settings(max_examples=30)
@given(image_nets())
def test_channels_last_networks_run_behind_all_passes_in_one_arena(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    for begun in (graph, engine.optimise(graph, level=2)):
        check_near(engine.compile(engine.optimise(begun, level=3)).run(feeds), wanted)


def _small() -> Graph:
    """Two convolutions, an addition, a pool, a head."""
    graph = Graph("small")
    x = graph.input("x", (1, 3, 16, 16))
    first = ops.relu(ops.conv(x, _weights(16, 3, 3, 3), _weights(16), pads=1))
    second = ops.conv(first, _weights(16, 16, 3, 3), _weights(16), pads=1)
    pooled = ops.max_pool(ops.relu(second + first), 2, strides=2)
    flat = ops.flatten(ops.global_average_pool(pooled), 1)
    graph.output(ops.gemm(flat, _weights(16, 4)), "y")
    return graph


def test_channels_last_turns_the_input_alone() -> None:
    found = engine.optimise(_small(), level=3)
    assert _names(found) == [
        "transpose",
        "nhwc_conv",
        "nhwc_conv",
        "nhwc_max_pool",
        "reduce_mean",
        "reshape",
        "gemm",
    ]
    assert [op.attrs["activation"] for op in found.operators[1:3]] == ["clip", "clip"]
    assert len(found.operators[2].inputs) == 4
    assert engine.optimise(found, level=3) is found


def test_channels_last_leaves_one_convolution_alone() -> None:
    graph = Graph("one")
    graph.output(ops.conv(graph.input("x", (1, 8, 9, 9)), _weights(8, 8, 3, 3), pads=1), "y")
    assert CHANNELS_LAST(graph) is graph


def test_a_network_that_has_channels_last_outside_turns_nothing() -> None:
    graph = Graph("from a converter")
    x = graph.input("x", (1, 9, 9, 8))
    y = ops.relu(ops.conv(ops.transpose(x, (0, 3, 1, 2)), _weights(8, 8, 3, 3), pads=1))
    graph.output(ops.transpose(y, (0, 2, 3, 1)), "y")
    assert _names(engine.optimise(graph, level=3)) == ["nhwc_conv"]


def test_a_channel_shuffle_moves_the_last_axes_only() -> None:
    graph = Graph("shuffled")
    x = graph.input("x", (1, 8, 8, 8))
    apart = ops.reshape(ops.conv(x, _weights(32, 8, 1, 1)), (1, 4, 8, 8, 8))
    mixed = ops.reshape(ops.transpose(apart, (0, 2, 1, 3, 4)), (1, 32, 8, 8))
    graph.output(ops.global_max_pool(ops.conv(mixed, _weights(8, 32, 1, 1))), "y")
    found = engine.optimise(graph, level=3)
    assert [op.attrs["perm"] for op in found.operators if op.schema.name == "transpose"][1:] == [(0, 1, 2, 4, 3)]


def test_channels_last_keeps_the_names_of_the_user() -> None:
    graph = Graph("named")
    w = _weights(16, 16, 3, 3)
    x = graph.input("x", (1, 16, 9, 9))
    for _ in range(3):
        x = ops.sigmoid(ops.conv(x, w, pads=1))
    graph.output(ops.global_average_pool(x), "y")
    names = {v.name for op in graph.operators for v in op.outputs if op.schema.name in ("conv", "sigmoid")}
    assert names <= set(CHANNELS_LAST(graph).vars)


def test_channels_last_leaves_float16_alone() -> None:
    graph = Graph("half")
    w = _weights(8, 8, 3, 3).astype(np.float16)
    x = ops.conv(ops.conv(graph.input("x", (1, 8, 16, 16), np.float16), w), w)
    graph.output(ops.global_average_pool(x), "y")
    assert "nhwc_conv" not in _names(CHANNELS_LAST(graph))


@pytest.mark.slow
@settings(max_examples=600)
@given(image_nets(24))
def test_large_channels_last_networks_compute_the_same(graph: Graph) -> None:
    feeds = random_feeds(graph)
    check_near(engine.compile(engine.optimise(graph, level=3)).run(feeds), run_unplanned(graph, feeds))
