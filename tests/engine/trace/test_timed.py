"""Traces of runs that were timed: balanced, ordered by time, and as the plan foretold where calls ran in turn."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.lower.schedule import BARRIER
from engine.text.errors import OptionError
from engine.trace.trace import ESTIMATED, NOT_RUN, Event, Trace
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.traces.exported_files import written

KINDS = (("static", "", 0), ("dynamic", "", 0), ("static", "exact", 3), ("static", "levels", 2))


def _timed(graph: Graph, mode: str = "static", parallel: str = "", threads: int = 0) -> Trace:
    exe = engine.compile(graph, mode=mode, parallel=parallel, threads=threads, optimise=0)
    _, timings = exe.timed(random_feeds(graph))
    return exe.trace(mode, timings=timings)


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from(KINDS))
def test_timed_traces_end_all_operators_and_free_all_chunks(graph: Graph, kind: tuple[str, str, int]) -> None:
    check_balanced(tuple(_timed(graph, *kind)))


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from([("", 1), ("exact", 1), ("exact", 3), ("levels", 2)]))
def test_estimated_runs_are_as_balanced_and_keep_to_the_schedule(graph: Graph, kind: tuple[str, int]) -> None:
    plan = engine.make_plan(graph, parallel=kind[0], optimise=0)
    trace = plan.trace(threads=kind[1])
    events = tuple(trace)
    check_balanced(events)
    assert trace.facts.clock == ESTIMATED and {e.thread for e in events} <= set(range(kind[1]))
    begun = {e.tick: e.seconds for e in events if e.kind == "begin"}
    ended = {e.tick: e.seconds for e in events if e.kind == "end"}
    assert len(begun) == len(plan.lowered.calls)
    for thread in range(kind[1]):  # runs one call after the other
        kinds = [e.kind for e in events if e.thread == thread and e.kind in ("begin", "end")]
        assert kinds == ["begin", "end"] * (len(kinds) // 2)
    tick = plan.schedule.tick
    for before, after in zip(tick[plan.schedule.before], tick[plan.schedule.after], strict=True):
        if BARRIER not in (before, after):
            assert ended[int(before)] <= begun[int(after)]
    assert trace.facts.peak_bytes <= trace.facts.possible_peak_bytes


def check_balanced(events: tuple[Event, ...]) -> None:
    """Checks that events are in order of time, and that what begins ends."""
    assert [e.seconds for e in events] == sorted(e.seconds for e in events)
    begun = Counter((e.tick, e.thread) for e in events if e.kind == "begin")
    assert begun == Counter((e.tick, e.thread) for e in events if e.kind == "end")
    assert set(begun.values()) <= {1}
    ended = Counter(e.chunk for e in events if e.kind == "free") + Counter(
        e.overwrites for e in events if e.kind == "overwrite"
    )
    assert ended == Counter(e.chunk for e in events if e.kind in ("alloc", "overwrite"))
    assert not events or events[-1].live_bytes == 0
    assert min((e.live_bytes for e in events), default=0) >= 0


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from(["static", "dynamic"]))
def test_calls_in_turn_need_no_more_than_was_planned(graph: Graph, mode: str) -> None:
    planned = engine.make_plan(graph, optimise=0).trace(mode)
    assert max(e.live_bytes for e in _timed(graph, mode)) <= max(e.live_bytes for e in planned)


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_live_bytes_of_calls_at_once_stay_within_the_arena(graph: Graph) -> None:
    exe = engine.compile(graph, parallel="exact", threads=2, optimise=0)
    _, timings = exe.timed(random_feeds(graph))
    assert max(e.live_bytes for e in exe.trace(timings=timings)) <= exe.arena_bytes


def test_timings_of_another_run_are_refused() -> None:
    exe = engine.compile(build(seeded(3), 9), optimise=0)
    _, timings = exe.timed(random_feeds(exe.graph))
    with pytest.raises(OptionError, match="timings are of another run"):
        exe.trace(timings=timings[:-1])


def test_a_planned_trace_has_no_times() -> None:
    assert {(e.seconds, e.thread) for e in engine.make_plan(build(seeded(3), 9), optimise=0).trace()} == {
        (NOT_RUN, NOT_RUN)
    }


def test_chrome_shows_one_row_a_thread_and_operators_in_microseconds() -> None:
    events = _timed(build(seeded(3), 20), parallel="exact", threads=2)
    shown = json.loads(written("chrome", events))["traceEvents"]
    slices = {e["name"]: e for e in shown if e["ph"] == "X"}
    ends = [e for e in events if e.kind == "end"]
    assert len(slices) == len(ends)
    for end in ends:
        shown_as = slices[end.operator]
        assert shown_as["tid"] == end.thread + 1
        assert shown_as["ts"] + shown_as["dur"] == pytest.approx(end.seconds * 1e6)
    assert {e["args"]["name"] for e in shown if e["ph"] == "M"} >= {"arenaplan random", "thread 0"}


def test_a_table_shows_times_only_where_there_are_some() -> None:
    graph = build(seeded(3), 9)
    assert "thread" in written("table", _timed(graph))
    assert "thread" not in written("table", engine.make_plan(graph, optimise=0).trace())


def test_trace_refuses_an_unknown_mode() -> None:
    with pytest.raises(OptionError, match="'fast' is unknown"):
        engine.make_plan(build(seeded(4), 5), optimise=0).trace("fast", threads=1)
