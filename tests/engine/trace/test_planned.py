"""Who makes a tensor: the operator that writes it, or what joins parts that are computed in their places."""

from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.lower.calls import Join
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import ARRIVALS, BEGIN
from tests.helpers.graphs.random_graphs import graphs


@given(graphs(), st.sampled_from(["static", "dynamic"]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_planned_traces_name_the_operator_that_makes_each_tensor(graph: Graph, mode: str, timed: bool) -> None:
    plan = engine.make_plan(graph, optimise=0)
    joins = {
        plan.lowered.values[v].name: s.name for s in plan.lowered.instructions if isinstance(s, Join) for v in s.outputs
    }
    runs = {0: "feed"}
    for event in plan.trace(mode, threads=int(timed)):
        if event.kind == BEGIN:
            runs[event.tick] = event.operator
        if event.kind in ARRIVALS:
            assert event.operator == joins.get(event.tensor, runs[event.tick])


def test_a_concatenation_in_place_is_called_so_everywhere() -> None:
    graph = Graph("g")
    x = graph.input("x", (64, 64))
    graph.output(ops.tanh(ops.concat([ops.relu(x), ops.neg(x)], 0)), "y")
    plan = engine.make_plan(graph, optimise=0)
    peak = {t.name: (t.operator, t.kind, t.begin) for t in plan.report().peak_tensors}
    assert peak["concat_0"] == ("concat_0", "concat", 1)
    data = rectangles_of(plan.trace())
    shown = {name: (data.operator[i], data.schema[i], int(data.begin[i])) for i, name in enumerate(data.name)}
    assert peak.items() <= shown.items()
    assert plan.trace().facts.peak_operator == plan.report().peak_operator == "relu_0"
