"""Events of a run: balanced, at most one fate a chunk, and live bytes that peak at the lower bound."""

import csv
import io
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.errors import UnknownHeapError
from allocator.heaps import HEAPS, simulate
from allocator.heaps.events import Events, of_chunks
from engine import Event, Graph
from engine.text.errors import OptionError
from engine.trace.buffers import buffers_of
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import ALLOC, ARRIVALS, BEGIN, END, FREE, GROW, NOTHING, NOWHERE, OVERWRITE, PEAK, VIEW
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.traces.exported_files import written


@settings(max_examples=30)
@given(graphs(), st.sampled_from([0, 5]))
def test_traced_live_bytes_peak_where_the_report_says(graph: Graph, padding: int) -> None:
    plan = engine.make_plan(graph, padding=padding, optimise=0)
    for mode, peak in (("static", plan.report().peak_bytes), ("dynamic", plan.report().dynamic_peak_bytes)):
        trace = plan.trace(mode)
        events = tuple(trace)
        assert max((e.live_bytes for e in events), default=0) == peak == trace.facts.peak_bytes
        assert not events or events[-1].live_bytes == 0
        assert list(events) == sorted(events, key=lambda e: e.tick)
        ends = Counter(e.chunk for e in events if e.kind == FREE)
        ends += Counter(e.overwrites for e in events if e.kind == OVERWRITE)
        assert ends == Counter(e.chunk for e in events if e.kind in ARRIVALS)


@settings(max_examples=20)
@given(graphs())
def test_the_peak_is_told_once_where_it_is_first_reached(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    report, trace = plan.report(), plan.trace()
    events = tuple(trace)
    peaks = [i for i, e in enumerate(events) if e.kind == PEAK]
    assert len(peaks) == (report.peak_bytes > 0)
    for at in peaks:
        peak, before = events[at], events[:at]
        assert peak.bytes == peak.live_bytes == before[-1].live_bytes == report.peak_bytes
        assert all(e.live_bytes < peak.bytes for e in before[:-1])
        assert (peak.tick, peak.operator) == (report.peak_tick, report.peak_operator)
        assert (peak.tick, peak.operator) == (trace.facts.peak_tick, trace.facts.peak_operator)


TRAINED = st.randoms(use_true_random=False).map(lambda random: random_training(random.randrange))


@settings(max_examples=20, deadline=None)
@given(graphs() | TRAINED, st.sampled_from(sorted(HEAPS)))
def test_on_a_heap_chunks_lie_apart_and_the_footprint_is_what_it_reserves(graph: Graph, heap: str) -> None:
    plan = engine.make_plan(graph, optimise=0)
    assert simulate("refcount", of_problem_of(plan)).peak_requested == plan.report().dynamic_peak_bytes
    events, simulated = tuple(plan.trace("dynamic", heap=heap)), simulate(heap, of_problem_of(plan))
    assert max((e.footprint_bytes for e in events), default=0) == simulated.peak_reserved
    assert all(e.live_bytes <= e.footprint_bytes for e in events)
    alive: dict[int, tuple[int, int]] = {}
    for event in events:
        if event.kind == FREE:
            alive.pop(event.chunk, None)
        elif event.kind == ALLOC and event.bytes and event.offset != NOWHERE:
            span = event.offset, event.offset + event.bytes
            assert not any(span[0] < high and low < span[1] for low, high in alive.values())
            alive[event.chunk] = span
        elif event.kind == OVERWRITE and event.overwrites in alive:
            alive[event.chunk] = alive.pop(event.overwrites)
            assert event.offset == alive[event.chunk][0] and event.offset + event.bytes <= alive[event.chunk][1]


def test_a_heap_that_knows_no_addresses_tells_of_none() -> None:
    data = rectangles_of(engine.make_plan(build(seeded(4), 20), optimise=0).trace("dynamic", heap="refcount"))
    assert not data.has_places and (data.footprint == data.live).all()


def of_problem_of(plan: engine.ExecutionPlan) -> Events:
    """Returns what reference counting asks a heap for."""
    return of_chunks(buffers_of(plan, "dynamic").chunks)


@settings(max_examples=20)
@given(graphs())
def test_a_view_lies_inside_what_it_looks_at(graph: Graph) -> None:
    alive: dict[int, Event] = {}
    for event in engine.make_plan(graph, optimise=0).trace():
        if event.kind in ARRIVALS:
            alive.pop(event.overwrites, None)
            alive[event.chunk] = event
        elif event.kind == FREE:
            alive.pop(event.chunk)
        elif event.kind == VIEW:
            chunk = alive[event.chunk]
            assert chunk.offset <= event.offset
            assert event.offset + event.bytes <= chunk.offset + chunk.bytes


@settings(max_examples=20)
@given(graphs())
def test_each_call_begins_and_ends_around_what_it_writes(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    events = tuple(plan.trace())
    for call in plan.lowered.calls:
        kinds = [e.kind for e in events if e.tick == call.tick]
        assert kinds.count(BEGIN) == kinds.count(END) == 1 and kinds[-1] == END
        comes = [kinds.index(kind) for kind in ARRIVALS if kind in kinds]
        assert kinds.index(BEGIN) < min(comes, default=len(kinds))


@settings(max_examples=20)
@given(graphs())
def test_lives_are_the_chunks_of_the_plan(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    data = rectangles_of(plan.trace())
    chunks = plan.chunks
    lifetimes = zip(data.begin, data.end, data.offset, data.size, strict=True)
    meant = zip(chunks.begin, chunks.end, plan.plan.offset, plan.problem.size, strict=True)
    assert sorted(lifetimes) == sorted(meant)
    assert (data.overwrites != NOTHING).sum() == len(chunks.src)
    assert data.live.max(initial=0) == plan.report().peak_bytes
    assert [o.name for o in data.operators] == [c.name for c in plan.lowered.calls]


def test_a_trace_can_be_told_again_and_makes_events_one_by_one() -> None:
    trace = engine.make_plan(build(seeded(3), 20), optimise=0).trace()
    assert tuple(trace) == tuple(trace)
    assert next(iter(trace)).kind == GROW


def test_a_dynamic_trace_overwrites_nothing() -> None:
    plan = engine.make_plan(build(seeded(4), 20), optimise=0)
    assert OVERWRITE not in {e.kind for e in plan.trace("dynamic")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fast"}, "'fast' is unknown"),
        ({"heap": "pytorch"}, "is for mode 'dynamic'"),
        ({"threads": 2}, "give parallel='edges' too"),
        ({"threads": -1}, "no integer from 0"),
        ({"threads": True}, "no integer from 0"),
        ({"threads": 10**9}, "no integer from 0"),
        ({"mode": "dynamic", "heap": 3}, "heap 3 is not the name of a heap model"),
    ],
)
def test_trace_refuses_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        engine.make_plan(build(seeded(4), 5), optimise=0).trace(**options)


def test_trace_refuses_an_unknown_heap() -> None:
    with pytest.raises(UnknownHeapError, match="no heap 'pile'"):
        engine.make_plan(build(seeded(4), 5), optimise=0).trace("dynamic", heap="pile")


def test_every_format_tells_of_every_event() -> None:
    trace = engine.make_plan(build(seeded(3), 20), optimise=0).trace()
    events = tuple(trace)
    rows = list(csv.DictReader(io.StringIO(written("csv", trace))))
    assert [int(r["live_bytes"]) for r in rows] == [e.live_bytes for e in events]
    assert [e["tensor"] for e in json.loads(written("json", trace))["events"]] == [e.tensor for e in events]


@settings(max_examples=20)
@given(graphs())
def test_chrome_spans_open_and_close_in_pairs(graph: Graph) -> None:
    shown = json.loads(written("chrome", engine.make_plan(graph, optimise=0).trace()))["traceEvents"]
    open_spans: dict[int, float] = {}
    for event in shown:
        if event["ph"] == "b":
            assert event["id"] not in open_spans
            open_spans[event["id"]] = event["ts"]
        elif event["ph"] == "e":
            assert open_spans.pop(event["id"]) <= event["ts"]
    assert not open_spans
