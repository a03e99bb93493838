"""One stream of events for all stages of a run: balanced, never moved, never on top of each other."""

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Event, Executable
from engine.planning.reserved import BOUNDARY_BYTES
from engine.stages.segments import Segments
from engine.stages.trace import trace_stages
from engine.text.errors import EngineError, OptionError
from engine.trace.trace import ARRIVALS, FREE, NOT_RUN, NOTHING, NOWHERE, STAGE
from tests.helpers.graphs.staged_graphs import WIDTH, rows, staged_graph
from tests.helpers.traces.exported_files import written

MODES = st.sampled_from(["static", "dynamic"])
CUTS = st.lists(st.integers(0, WIDTH - 1), min_size=1, max_size=3)


def ran(
    cuts: Sequence[int], keep: Sequence[bool] = (), length: int = 9, padding: int = 0, mode: str = "static"
) -> Executable:
    """Returns such a graph after a run."""
    exe = engine.compile(staged_graph(cuts, keep), mode=mode, padding=padding)
    exe.run({"x": rows(length, len(cuts))})
    return exe


def check_balanced(events: Sequence[Event]) -> None:
    """Checks that what is allocated is freed once, lies still meanwhile, and that live bytes are the sum of it."""
    alive: dict[int, Event] = {}
    for event in events:
        if event.kind in ("free", "overwrite"):
            gone = alive.pop(event.overwrites if event.kind == "overwrite" else event.chunk)
            assert event.kind == "overwrite" or (gone.offset, gone.bytes, gone.tensor) == (
                event.offset,
                event.bytes,
                event.tensor,
            )
        if event.kind in ("alloc", "overwrite"):
            assert event.chunk not in alive
            alive[event.chunk] = event
        assert event.live_bytes == sum(e.bytes for e in alive.values())
    assert not alive
    begun = Counter(e.chunk for e in events if e.kind in ("alloc", "overwrite"))
    assert set(begun.values()) == {1}


def check_apart(events: Sequence[Event]) -> None:
    """Checks that no two live chunks share a byte, in whichever stage they were planned."""
    alive: dict[int, tuple[int, int]] = {}
    for event in events:
        alive.pop(event.overwrites, None)
        if event.kind == "free":
            alive.pop(event.chunk, None)  # one without bytes is nowhere
        elif event.kind in ("alloc", "overwrite") and event.bytes:
            low, high = event.offset, event.offset + event.bytes
            assert not any(low < end and begin < high for begin, end in alive.values())
            alive[event.chunk] = low, high


@settings(max_examples=20, deadline=None)
@given(CUTS, st.lists(st.booleans(), max_size=3), st.integers(0, 12), MODES, st.sampled_from([0, 200]))
def test_stages_make_one_balanced_stream(
    cuts: list[int], keep: list[bool], length: int, mode: str, padding: int
) -> None:
    exe = ran(cuts, keep, length, padding)
    events = tuple(exe.trace(mode))
    check_balanced(events)
    assert [e.tick for e in events] == sorted(e.tick for e in events)
    assert events[-1].tick <= sum(len(s.plan.lowered.instructions) + 2 for s in exe.stages)
    if mode == "static":
        check_apart(events)
    else:
        assert {e.offset for e in events if e.kind in ARRIVALS} == {NOWHERE}


@settings(max_examples=15, deadline=None)
@given(CUTS, st.lists(st.booleans(), max_size=3), MODES)
def test_timed_stages_tell_of_the_same_chunks_in_order_of_time(cuts: list[int], keep: list[bool], mode: str) -> None:
    exe = ran(cuts, keep, mode=mode)
    _, timings = exe.timed({"x": rows(9, len(cuts))})
    events = tuple(exe.trace(mode, timings=timings))
    check_balanced(events)
    assert [e.seconds for e in events] == sorted(e.seconds for e in events)
    calls = sum(len(s.plan.lowered.calls) for s in exe.stages)
    assert Counter(e.kind for e in events if e.kind in ("begin", "end")) == {"begin": calls, "end": calls}
    planned = tuple(trace_stages(exe.stages, mode))
    kinds = ("alloc", "overwrite", "free")
    moments = Counter((e.kind, e.tensor, e.bytes, e.offset) for e in events if e.kind in kinds)
    assert moments == Counter((e.kind, e.tensor, e.bytes, e.offset) for e in planned if e.kind in kinds)


def test_tensors_alive_across_a_stage_are_traced_once() -> None:
    exe = ran((0, 1), (True, False))
    events = tuple(trace_stages(exe.stages))
    second, third = (stage.plan.lowered.inputs for stage in exe.stages[1:])
    (kept,) = second.keys() & third.keys()
    begin, end = (e for e in events if e.tensor == kept and e.kind in (*ARRIVALS, FREE))
    marks = [e.tick for e in events if e.kind == STAGE]
    assert begin.tick < marks[1] < marks[2] < end.tick
    assert (
        begin.chunk == end.chunk and begin.offset == end.offset == exe.stages[1].plan.places[second[kept]].layout.offset
    )


def test_each_stage_begins_with_a_mark_that_tells_the_arena_and_what_decided_it() -> None:
    exe = ran((0, 1))
    marks = [e for e in trace_stages(exe.stages) if e.kind == STAGE]
    assert [m.operator for m in marks] == ["stage 1", "stage 2", "stage 3"]
    assert [m.tensor for m in marks] == ["", "count_nonzero_0", "count_nonzero_1"]
    assert [m.bytes for m in marks] == sorted(m.bytes for m in marks)
    assert marks[-1].bytes == exe.stage_report().arena_bytes
    assert marks[-1].bytes == max(s.plan.arena_bytes - BOUNDARY_BYTES * len(s.after.boundaries) for s in exe.stages)
    assert {m.chunk for m in marks} == {NOTHING} and {(m.seconds, m.thread) for m in marks} == {(NOT_RUN, NOT_RUN)}


def test_one_stage_tells_what_its_plan_tells() -> None:
    graph = staged_graph(())
    exe = engine.compile(graph)
    exe.run({"x": np.zeros((3, WIDTH), np.float32)})
    mark, *events = trace_stages(exe.stages)
    assert events == list(exe.plan.trace()) and mark.bytes == exe.plan.arena_bytes


def test_trace_stages_refuses_an_unknown_mode() -> None:
    with pytest.raises(OptionError, match="'fast' is unknown"):
        trace_stages(ran((0,)).stages, "fast")


def test_every_trace_format_takes_stage_marks() -> None:
    trace = trace_stages(ran((0, 1)).stages)
    assert [e["kind"] for e in json.loads(written("json", trace))["events"]] == [e.kind for e in trace]
    shown = json.loads(written("chrome", trace))["traceEvents"]
    instants = [e for e in shown if e["ph"] == "i" and e["cat"] == "stage"]
    assert [(e["name"], e["args"]["decided"]) for e in instants] == [
        ("stage 1", ""),
        ("stage 2", "count_nonzero_0"),
        ("stage 3", "count_nonzero_1"),
    ]
    assert len([e for e in shown if e["ph"] == "b"]) == len([e for e in shown if e["ph"] == "e"])
    assert not [e for e in shown if e["ph"] == "X" and e["name"].startswith("stage")]


def test_a_plan_that_was_known_is_told_without_stages_and_one_that_is_not_yet_there_is_refused() -> None:
    exe = engine.compile(staged_graph((), (), 3))
    for mode in ("static", "dynamic"):
        assert tuple(exe.trace(mode)) == tuple(exe.plan.trace(mode))
    with pytest.raises(EngineError, match="nothing has run yet"):
        engine.compile(staged_graph((0,))).trace()


def test_segments_are_told_by_address_and_seams_are_no_part_of_the_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.stages.compiling.new_memory", lambda capacity, align: Segments(align, capacity))
    exe = ran((0, 1, 2), (True, True, True), 40)
    events = tuple(exe.trace())
    check_balanced(events)
    check_apart(events)
    assert exe.stages[-1].after.boundaries
    marks = [e.bytes for e in events if e.kind == STAGE]
    assert marks[-1] == exe.stage_report().arena_bytes < max(e.offset + e.bytes for e in events if e.chunk != NOTHING)


def test_tensors_alive_across_a_stage_keep_their_padding() -> None:
    events = [e for e in ran((0,), (), 3, padding=200).trace() if e.kind != STAGE]
    assert {(e.bytes, e.padding) for e in events if e.tensor == "count_nonzero_0"} == {(208, 200)}
    assert min(e.bytes for e in events if e.tensor == "nonzero_0/workspace") > 200
