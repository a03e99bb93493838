"""All passes on random networks, against onnxruntime; and what the writer of models refuses."""

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.zoo import mobilenet_v2
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.onnxruntime_session import OnnxSession


@settings(max_examples=20, deadline=None)
@given(layered_graphs())
def test_random_layers_agree_with_onnxruntime_behind_all_passes(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted, exact = OnnxSession(graph).run(feeds), run_unplanned(graph, feeds)
    outputs = engine.compile(engine.optimise(graph, 2), optimise=0).run(feeds)
    for name, array in wanted.items():
        atol = 1e-3 * float(np.abs(array).max(initial=1e-9))  # sums may cancel
        np.testing.assert_allclose(exact[name], array, rtol=1e-3, atol=atol)
        np.testing.assert_allclose(outputs[name], array, rtol=1e-3, atol=atol)


def test_graphs_written_as_onnx_are_read_again() -> None:
    graph = mobilenet_v2(2, 40)
    again = engine.load_onnx(to_onnx(graph))
    for one, other in ((graph, again), (engine.optimise(graph, 2), engine.optimise(again, 2))):
        assert [(op.schema, op.outputs[0].spec) for op in one.operators] == [
            (op.schema, op.outputs[0].spec) for op in other.operators
        ]
    feeds = random_feeds(graph)
    (output,), (wanted,) = (engine.compile(g, optimise=0).run(feeds).values() for g in (again, graph))
    assert np.array_equal(output, wanted)


def test_the_onnx_writer_hands_a_parameter_from_run_to_run() -> None:
    graph = Graph("counter")
    held = graph.parameter(np.zeros(3, np.float32), "held")
    graph.output(graph.assign(held, held + graph.input("x", (3,))), "y")
    session, exe = OnnxSession(graph), engine.compile(graph, optimise=0)
    for step in range(3):
        x = np.array([1, 2, step], np.float32)
        assert np.array_equal(session.run({"x": x})["y"], exe(x=x)["y"])
    assert np.array_equal(session.parameters["held"], [3, 6, 3])


def test_the_onnx_writer_refuses_unknown_operators() -> None:
    graph = Graph("fused")
    graph.output(ops.cum_sum(graph.input("x", (3,)), 0), "y")
    with pytest.raises(KeyError, match="cum_sum"):
        to_onnx(graph)
