"""What traces know beyond events: reads against the facts of `engine.explain`, and weights against the graph."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph, zoo
from engine.explain.accesses import accesses_of
from engine.readers import read_trace
from engine.trace.rectangles import rectangles_of
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.traces.sample_traces import staged
from tests.helpers.traces.saved_traces import save_trace


@settings(max_examples=15, deadline=None)
@given(graphs(), st.sampled_from((0, 3)))
def test_reads_are_those_that_explanations_name(graph: Graph, level: int) -> None:
    plan = engine.make_plan(graph, optimise=level)
    details, accesses = plan.trace().details(), accesses_of(plan)
    uses = {(use.tick, chunk) for chunk in range(len(plan.chunks)) for use in accesses.uses(chunk)}
    reads = set(zip(details.read_tick.tolist(), details.read_chunk.tolist(), strict=True))
    calls = {call.tick for call in plan.lowered.calls}
    assert {use for use in reads if use[0] in calls} == {use for use in uses if use[0] in calls}
    outputs = {plan.ids[v] for v in plan.lowered.outputs.values() if v in plan.ids}
    fetched = {(accesses.last_tick, int(plan.chunks.chunk_of[v])) for v in outputs}
    assert {use for use in reads if use[0] not in calls} == fetched <= uses


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_reads_lie_within_the_lifetimes_of_rectangles(mode: str) -> None:
    of = rectangles_of(engine.make_plan(zoo.squeezenet(image=64)).trace(mode))
    assert len(of.read_tick) >= len(of.operators)
    assert ((of.begin[of.read_row] <= of.read_tick) & (of.read_tick < of.end[of.read_row])).all()


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_reads_of_stages_lie_within_lifetimes(mode: str) -> None:
    of = rectangles_of(staged(2, mode))
    ticks = {o.tick for o in of.operators}
    assert len(of.stages) == 3
    assert len(set(of.read_tick.tolist()) & ticks) == len(ticks)
    assert ((of.begin[of.read_row] <= of.read_tick) & (of.read_tick < of.end[of.read_row])).all()


def test_weights_are_the_constants_each_once_with_their_readers() -> None:
    graph = Graph("twice")
    x, weight = graph.input("x", (4, 4)), graph.constant(np.eye(4, dtype=np.float32), "w")
    same = graph.constant(np.ones(4, np.float32), "b")
    graph.output((x + weight + same) * weight, "y")
    plan = engine.make_plan(graph, optimise=0)
    weights = {w.name: w for w in plan.trace().details().weights}
    assert {n: (w.shape, w.dtype, w.bytes) for n, w in weights.items()} == {
        "w": ("4x4", "float32", 64),
        "b": ("4", "float32", 16),
    }
    names = {call.tick: call.name for call in plan.lowered.calls}
    assert [names[tick] for tick in weights["w"].ticks] == ["add_0", "mul_0"]
    assert [names[tick] for tick in weights["b"].ticks] == ["add_1"]


@pytest.mark.parametrize("network", [zoo.resnet50, zoo.mobilenet_v2])
def test_weights_add_up_to_those_of_the_report(network: zoo.Network) -> None:
    plan = engine.make_plan(network())
    weights = plan.trace().details().weights
    assert sum(w.bytes for w in weights) == plan.weights_bytes
    assert all(w.ticks for w in weights)


def test_attributes_are_one_line_of_what_an_operator_was_given() -> None:
    of = rectangles_of(engine.make_plan(zoo.squeezenet(), optimise=0).trace())
    text = {o.name: o.attributes for o in of.operators}
    assert "strides=[2, 2]" in text["conv_0"]
    assert text["relu_0"] == ""
    assert all("\n" not in t and len(t) <= 240 for t in text.values())


def test_a_trace_from_a_file_has_no_details(tmp_path: Path) -> None:
    trace = engine.make_plan(zoo.squeezenet(image=64)).trace()
    of = rectangles_of(read_trace(save_trace(trace, tmp_path / "trace.json")))
    assert not len(of.read_tick) and not of.weights and not any(o.attributes for o in of.operators)
