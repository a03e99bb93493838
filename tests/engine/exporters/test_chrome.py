"""Chrome trace events: what opens closes, slices of a thread stand side by side, counters are those of the trace."""

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings

import engine
from engine import Event, Trace, zoo
from engine.trace.trace import BEGIN, PEAK, VIEW
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import EMPTY, any_traces, arrivals, cut, layered, peak


def _shown(trace: Trace) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(exported("chrome", trace))["traceEvents"]
    return events


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_chrome_opens_and_closes_each_tensor_once(trace: Trace) -> None:
    open_spans: dict[int, dict[str, Any]] = {}
    begun = list[dict[str, Any]]()
    for event in _shown(trace):
        if event["ph"] == "b":
            assert event["id"] not in open_spans
            open_spans[event["id"]] = event
            begun.append(event)
        elif event["ph"] == "e":
            begin = open_spans.pop(event["id"])
            assert begin["ts"] <= event["ts"] and begin["name"] == event["name"]
    assert not open_spans
    shown = [(e["id"], e["args"]["bytes"], e["args"]["offset"], e["args"].get("overwrites", -1)) for e in begun]
    assert shown == [(e.chunk, e.bytes, e.offset, e.overwrites) for e in arrivals(trace)]


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_chrome_operators_of_a_thread_never_overlap(trace: Trace) -> None:
    """By less than the error of times that are written as microseconds."""
    slices = [e for e in _shown(trace) if e["ph"] == "X"]
    until: dict[int, float] = defaultdict(float)
    for one in sorted(slices, key=lambda e: (e["ts"], e["ts"] + e["dur"])):
        assert one["ts"] >= until[one["tid"]] - 1e-6 and one["dur"] >= 0
        until[one["tid"]] = one["ts"] + one["dur"]
    assert len(slices) == sum(e.kind == BEGIN for e in trace)


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_chrome_counters_tell_all_bytes_and_an_instant_the_peak(trace: Trace) -> None:
    shown = _shown(trace)
    counted = {name: [e["args"]["bytes"] for e in shown if e["ph"] == "C" and e["name"] == name] for name in _COUNTERS}
    for name, value in _COUNTERS.items():
        assert counted[name] == _changes([value(e) for e in trace])
    assert [e["args"]["bytes"] for e in shown if e["name"] == "peak" and e["ph"] == "i"] == [
        e.bytes for e in trace if e.kind == PEAK
    ]
    assert max(counted["live"], default=0) == peak(trace)


_COUNTERS: dict[str, Callable[[Event], int]] = {
    "live": lambda e: e.live_bytes,
    "footprint": lambda e: e.footprint_bytes,
    "unused": lambda e: e.footprint_bytes - e.live_bytes,
}


def _changes(values: list[int]) -> list[int]:
    return [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]


def test_chrome_of_an_empty_trace_has_its_name_alone() -> None:
    assert [e["ph"] for e in _shown(EMPTY)] == ["M"]


def test_chrome_names_threads_and_marks_views() -> None:
    trace = engine.make_plan(build(seeded(3), 20), parallel="exact", optimise=0).trace(threads=2)
    shown = _shown(trace)
    names = {e["tid"]: e["args"]["name"] for e in shown if e["name"] == "thread_name"}
    assert names == {thread + 1: f"thread {thread}" for thread in {e.thread for e in trace if e.kind == BEGIN}}
    views = [e["name"] for e in shown if e["ph"] == "i" and e["cat"] == "view"]
    assert views == [f"view {e.tensor}" for e in trace if e.kind == VIEW] != []


def test_chrome_closes_live_tensors_when_the_last_operator_ends() -> None:
    trace = cut(engine.make_plan(zoo.squeezenet(), optimise=0).trace(), 100)
    *_, last = trace
    ends = [e["ts"] for e in _shown(trace) if e["ph"] == "e"]
    assert ends[-1] == (last.tick + 1) * 1000


def test_chrome_notes_the_layers_of_operators_and_tensors() -> None:
    shown = _shown(layered())
    operators = {e["name"]: e["args"].get("layer", "") for e in shown if e["ph"] == "X"}
    assert operators == {"layer1.0/relu": "layer1.0", "exp": "", "last": ""}
    assert {e["name"] for e in shown if e["ph"] == "b" and e["args"].get("layer") == "layer1.0"} == {"h"}
