"""Memory of the dynamic run where the graph alone decides it."""

import engine
import ops
from engine import Graph
from engine.executor.dynamic import DynamicExecutor
from tests.helpers.graphs.unplanned_run import random_feeds


def test_a_concatenation_that_nobody_reads_keeps_its_first_part_until_it_is_whole() -> None:
    graph = Graph()
    x = graph.input("x", (4, 6))
    first = ops.relu(x)
    ops.sigmoid(x)
    ops.concat([first, x], axis=1)
    graph.output(ops.tanh(x))
    exe = engine.compile(graph, mode="dynamic", optimise=0)
    exe.run(random_feeds(graph))
    assert isinstance(exe.executor, DynamicExecutor)
    assert exe.executor.peak_bytes == exe.report().dynamic_peak_bytes
