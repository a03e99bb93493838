"""Files for Perfetto, read by its own messages: slices nest, lanes are few, counters are those of the trace."""

import io
import sys
from collections import Counter, defaultdict
from importlib import import_module
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings

import engine
from engine import Trace
from engine.exporters import perfetto
from engine.exporters.events import nanoseconds, without_overlaps
from engine.text.errors import EngineError
from engine.trace.trace import ARRIVALS, BEGIN, END, PEAK
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import EMPTY, any_traces, arrivals, hostile, layered, peak, staged

messages = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
EVENTS = messages.TrackEvent


def _packets(trace: Trace) -> tuple[dict[int, Any], list[Any]]:
    """Returns descriptors by track, and the packets that have a time."""
    read = messages.Trace.FromString(exported("perfetto", trace)).packet
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in read if p.HasField("track_descriptor")}
    return tracks, [p for p in read if p.HasField("track_event")]


def _notes(packet: Any) -> dict[str, int | str]:
    notes = packet.track_event.debug_annotations
    return {n.name: n.int_value if n.HasField("int_value") else n.string_value for n in notes}


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_slices_of_a_track_come_one_after_the_other_and_all_is_in_order_of_time(trace: Trace) -> None:
    tracks, events = _packets(trace)
    opened: Counter[int] = Counter()
    for packet in events:
        event = packet.track_event
        assert event.track_uuid in tracks
        if event.type == EVENTS.TYPE_SLICE_BEGIN:
            opened[event.track_uuid] += 1
        elif event.type == EVENTS.TYPE_SLICE_END:
            opened[event.track_uuid] -= 1
        assert opened[event.track_uuid] in {0, 1}
    assert not any(opened.values())
    times = [p.timestamp for p in events]
    assert times == sorted(times) and set(times) <= {nanoseconds(e) for e in without_overlaps(trace)}


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_each_tensor_is_a_slice_with_notes_in_as_few_lanes_as_can_be(trace: Trace) -> None:
    tracks, events = _packets(trace)
    slices = [p for p in events if tracks[p.track_event.track_uuid].name == "tensors" and p.track_event.type == 1]
    notes = [_notes(p) for p in slices]
    shown = [(n["chunk"], n["bytes"], n["offset"], n["padding"], n.get("overwrites", -1)) for n in notes]
    assert shown == [(e.chunk, e.bytes, e.offset, e.padding, e.overwrites) for e in arrivals(trace)]
    alive, most = set[int](), 0
    for event in trace:
        alive -= {event.chunk if event.kind == "free" else event.overwrites}
        alive |= {event.chunk} if event.kind in ARRIVALS else set()
        most = max(most, len(alive))
    assert sum(t.name == "tensors" for t in tracks.values()) == most


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_perfetto_counters_tell_all_bytes(trace: Trace) -> None:
    tracks, events = _packets(trace)
    counted = defaultdict[str, list[int]](list)
    for packet in events:
        if packet.track_event.type == EVENTS.TYPE_COUNTER:
            counted[tracks[packet.track_event.track_uuid].name].append(packet.track_event.counter_value)
    assert max(counted["live bytes"], default=0) == peak(trace)
    assert max(counted["footprint bytes"], default=0) == max((e.footprint_bytes for e in trace), default=0)
    assert min(counted["unused bytes"], default=0) >= 0
    instants = [_notes(p) for p in events if tracks[p.track_event.track_uuid].name == "peak, evictions and stages"]
    assert [n["bytes"] for n in instants if "bytes" in n] == [e.bytes for e in trace if e.kind == PEAK]


def test_each_thread_has_a_track_and_each_stage_a_mark() -> None:
    parallel = engine.make_plan(build(seeded(3), 20), parallel="exact", optimise=0).trace(threads=2)
    tracks, _ = _packets(parallel)
    assert {t.name for t in tracks.values()} >= {"operators, thread 0", "operators, thread 1"}
    tracks, events = _packets(staged(2))
    assert [p.track_event.name for p in events if "arena_bytes" in _notes(p)] == ["stage 1", "stage 2", "stage 3"]
    assert [t.counter.unit for t in tracks.values() if t.HasField("counter")] == [perfetto._BYTES] * 3


def test_perfetto_of_an_empty_trace_has_tracks_and_no_events() -> None:
    tracks, events = _packets(EMPTY)
    assert tracks and not events


def test_perfetto_ends_an_operator_before_the_next_begins() -> None:
    """Ticks order what happens at one time, whichever operator ran first."""
    begin, end = (
        e for e in engine.make_plan(build(seeded(1), 1), optimise=0).trace(threads=1) if e.kind in {BEGIN, END}
    )
    first, second = evolve(begin, tick=7, seconds=0.0), evolve(begin, tick=3, seconds=1.0)
    events = [first, second, evolve(end, tick=7, seconds=1.0), evolve(end, tick=3, seconds=2.0)]
    assert [(e.kind, e.tick, e.seconds) for e in without_overlaps(events)] == [
        (BEGIN, 7, 0.0), (END, 7, 1.0), (BEGIN, 3, 1.0), (END, 3, 2.0)
    ]  # fmt: skip


def test_perfetto_export_says_how_to_install_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    out = io.BytesIO()
    with pytest.raises(EngineError, match=r"pip install -e '\.\[perfetto\]'"):
        perfetto.write(hostile(EMPTY), out)
    assert not out.getvalue()


def test_operators_and_tensors_have_notes_of_their_layers() -> None:
    _, events = _packets(layered())
    noted = {p.track_event.name: _notes(p)["layer"] for p in events if "layer" in _notes(p)}
    assert noted == {"layer1.0/relu": "layer1.0", "h": "layer1.0"}
