"""Events of a run: balanced, at most one fate a chunk, and live bytes that peak at the lower bound."""

import csv
import io
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.errors import OptionError
from engine.exporters import FORMATS
from tests.graphs import build, graphs, seeded


@settings(max_examples=60)
@given(graphs(), st.sampled_from([0, 5]))
def test_what_is_allocated_is_freed_and_live_bytes_peak_where_the_report_says(graph: Graph, padding: int) -> None:
    plan = engine.make_plan(graph, padding=padding)
    for mode, peak in (("static", plan.report().peak_bytes), ("dynamic", plan.report().dynamic_peak_bytes)):
        events = plan.trace(mode)
        assert max((e.live_bytes for e in events), default=0) == peak
        assert not events or events[-1].live_bytes == 0
        assert list(events) == sorted(events, key=lambda e: e.tick)
        ends = Counter(e.chunk for e in events if e.kind == "free") + Counter(
            e.overwrites for e in events if e.kind == "overwrite"
        )
        assert ends == Counter(e.chunk for e in events if e.kind != "free")


def test_a_dynamic_trace_overwrites_nothing() -> None:
    plan = engine.make_plan(build(seeded(4), 20))
    assert {e.kind for e in plan.trace("dynamic")} == {"alloc", "free"}


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(OptionError, match="'fast' is unknown"):
        engine.make_plan(build(seeded(4), 5)).trace("fast")


def test_every_format_tells_of_every_event() -> None:
    events = engine.make_plan(build(seeded(3), 20)).trace()
    assert len(FORMATS["table"](events).splitlines()) == len(events) + 1
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](events))))
    assert [int(r["live_bytes"]) for r in rows] == [e.live_bytes for e in events]
    assert [e["tensor"] for e in json.loads(FORMATS["json"](events))["events"]] == [e.tensor for e in events]


@settings(max_examples=40)
@given(graphs())
def test_chrome_spans_open_and_close_in_pairs(graph: Graph) -> None:
    shown = json.loads(FORMATS["chrome"](engine.make_plan(graph).trace()))["traceEvents"]
    open_spans: dict[int, float] = {}
    for event in shown:
        if event["ph"] == "b":
            assert event["id"] not in open_spans
            open_spans[event["id"]] = event["ts"]
        elif event["ph"] == "e":
            assert open_spans.pop(event["id"]) <= event["ts"]
    assert not open_spans
