"""Sums of convolutions in place of large concatenations: the same numbers, less memory."""

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.passes import verify
from engine.passes.fuse.conv import FUSE_CONV
from engine.passes.layout.channels_last import CHANNELS_LAST
from engine.passes.layout.split_convs import SPLIT_CONVS, split_convs
from engine.zoo import unet
from ops.tensor.spec import Array
from tests.helpers.graphs.image_networks import image_nets
from tests.helpers.graphs.pass_checks import check_near, schema_names
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned

EVERY = split_convs(0)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32) / 5


@settings(max_examples=15)
@given(image_nets())
def test_split_convs_networks_compute_the_same(graph: Graph) -> None:
    feeds = random_feeds(graph)
    last = FUSE_CONV(CHANNELS_LAST(graph))
    split = EVERY(last)
    verify(last, split)
    assert EVERY(split) is split
    wanted = run_unplanned(graph, feeds)
    check_near(run_unplanned(split, feeds), wanted)
    check_near(engine.compile(split, debug="poison", optimise=0).run(feeds), wanted)


def _joined(size: int, other: int = 8, added: bool = False, bias: bool = True) -> Graph:
    """Returns two branches of one image, the second in two steps; a convolution of what they are joined to."""
    graph = Graph("joined")
    x = graph.input("x", (1, 4, size, size))
    one = ops.relu(ops.conv(x, _weights(8, 4, 3, 3), pads=1))
    two = ops.tanh(ops.conv(ops.max_pool(x, 3, pads=1), _weights(8, 4, 1, 1)))
    parts = [two, one] if added else [one, two]
    whole: engine.Var = ops.concat(parts, axis=1)
    y = ops.conv(whole, _weights(other, 16, 3, 3), _weights(other) if bias else None, pads=1)
    graph.output(ops.relu(y + x if added else y), "y")
    return graph


@pytest.mark.parametrize(("added", "bias"), [(False, True), (False, False), (True, True), (True, False)])
def test_each_input_has_its_convolution_and_the_last_one_finishes(added: bool, bias: bool) -> None:
    graph = _joined(65, 4 if added else 8, added, bias)
    optimised = engine.optimise(graph, level=3)
    first, second = [op for op in optimised.operators if op.schema.name == "nhwc_conv"][-2:]
    assert "concat" not in schema_names(optimised)
    assert [op.inputs[0].shape[-1] for op in (first, second)] == [8, 8]
    assert [op.attrs["activation"] for op in (first, second)] == ["none", "clip"]
    assert second.inputs[3] is first.outputs[0]
    assert len(first.inputs) == (4 if added else 3)
    feeds = random_feeds(graph)
    check_near(engine.compile(optimised, optimise=0).run(feeds), run_unplanned(graph, feeds))


def test_the_first_part_conv_runs_before_the_last_input_is_computed() -> None:
    names = schema_names(engine.optimise(_joined(65), level=3))
    assert [name for name in names if name != "transpose"] == [
        *("nhwc_conv", "nhwc_max_pool", "nhwc_conv"),
        *("nhwc_conv", "tanh", "nhwc_conv"),
    ]


def test_split_convs_leaves_concatenations_that_can_be_nested() -> None:
    assert "concat" in schema_names(engine.optimise(_joined(64), level=3))


def test_split_convs_leaves_more_outputs_than_inputs_joined() -> None:
    assert "concat" in schema_names(engine.optimise(_joined(65, other=20), level=3))


def test_a_concatenation_that_others_read_stays() -> None:
    graph = _joined(65)
    (whole,) = next(op.outputs for op in graph.operators if op.schema.name == "concat")
    graph.output(ops.relu(whole), "whole")
    last = CHANNELS_LAST(graph)
    assert SPLIT_CONVS(last) is last


def test_a_u_net_needs_no_more_memory_with_channels_last() -> None:
    graph = unet(image=256, width=4, depth=3)
    plain, last = (engine.make_plan(engine.optimise(graph, level), optimise=0).arena_bytes for level in (2, 3))
    assert last <= 0.9 * plain
