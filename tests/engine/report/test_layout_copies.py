"""Layout conversions that are left in a plan."""

import numpy as np

import engine
import ops
from engine import Graph
from engine.report.layout_copies import Conversion
from ops.tensor.spec import Array


def _report(graph: Graph) -> engine.Report:
    return engine.compile(graph, optimise=0).report()


def _weights(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_copy_in_another_axis_order_is_a_reported_layout_copy() -> None:
    graph = Graph("turned")
    y = ops.relu(graph.input("x", (1, 4, 6, 8)))
    graph.output(ops.reshape(ops.transpose(y, (0, 2, 3, 1)), (6, 32)), "y")
    report = _report(graph)
    (reshape,) = [op for op in graph.operators if op.schema.name == "reshape"]
    (relu,) = [op for op in graph.operators if op.schema.name == "relu"]
    assert report.conversions == (Conversion(relu.outputs[0].name, 768, reshape.name),)
    assert f"is copied into another order of axes: {relu.outputs[0].name} for {reshape.name}" in report.text()
    assert report.to_json()["conversions"][0]["bytes"] == 768


def test_a_transpose_read_in_place_is_no_layout_copy() -> None:
    graph = Graph("read")
    x = graph.input("x", (4, 6))
    graph.output(ops.transpose(ops.relu(ops.transpose(x, (1, 0)) + 1.0), (1, 0)), "y")
    graph.output(ops.reshape(ops.slice(x, (0,), (2,), (1,)), (8,)), "z")
    assert _report(graph).conversions == ()


def test_a_channel_shuffle_is_no_layout_copy() -> None:
    graph = Graph("shuffled")
    apart = ops.reshape(ops.relu(graph.input("x", (2, 6, 4, 4))), (2, 3, 2, 4, 4))
    graph.output(ops.reshape(ops.transpose(apart, (0, 2, 1, 3, 4)), (2, 6, 4, 4)), "y")
    assert _report(graph).conversions == ()


def test_layout_copies_ignore_axes_of_one_element() -> None:
    graph = Graph("thin")
    x = graph.input("x", (1, 1, 6, 8))
    graph.output(ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (6, 8)), "y")
    assert _report(graph).conversions == ()


def test_a_network_with_channels_last_turns_its_input_at_most() -> None:
    graph = Graph("net")
    x = graph.input("image", (1, 3, 16, 16))
    for _ in range(3):
        x = ops.relu(ops.conv(x, _weights(16, x.shape[1], 3, 3), pads=1))
    graph.output(ops.flatten(ops.global_average_pool(x), 1), "y")
    conversions = _report(engine.optimise(graph, level=3)).conversions
    assert [c.tensor for c in conversions] in ([], ["image"])
