"""Memories and cascades in Chrome's and Perfetto's files: processes and tracks, arrows, slices around operators."""

import json
from collections import defaultdict
from importlib import import_module
from typing import Any

import pytest

import engine
from engine import ExecutionPlan, Trace
from tests.helpers.graphs.waiting import BOARD, waiting, with_engine
from tests.helpers.traces.cascaded_plans import cascaded_plan
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.moved_tensors import moved_tensors


@pytest.fixture(scope="module")
def cascaded() -> ExecutionPlan:
    return cascaded_plan()


def _chrome(trace: Trace) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(exported("chrome", trace))["traceEvents"]
    return events


def _perfetto(trace: Trace) -> tuple[dict[int, str], list[Any]]:
    """Returns the names of the tracks, and the events."""
    messages = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    read = messages.Trace.FromString(exported("perfetto", trace)).packet
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in read if p.HasField("track_descriptor")}
    return names, [p.track_event for p in read if p.HasField("track_event")]


def test_chrome_has_a_process_for_each_memory_with_its_tensors_and_arrows_between_them() -> None:
    shown = _chrome(moved_tensors().trace())
    process = {e["args"]["name"].split(":")[0]: e["pid"] for e in shown if e["name"] == "process_name"}
    begun = {e["name"]: e["pid"] for e in shown if e["ph"] == "b"}
    assert begun["far"] == process["dram"] and begun["near"] == begun["fetched"] == process["sram"]
    assert begun["w"] == begun["unread"] == process["flash"]
    assert next(e["args"]["offset"] for e in shown if (e["ph"], e["name"]) == ("b", "far")) == 0  # the first in dram
    arrows = {
        e["id"]: (s["pid"], e["pid"])
        for e in shown
        if e["ph"] == "f"
        for s in shown
        if (s["ph"], s.get("id")) == ("s", e["id"])
    }
    assert sorted(arrows.values()) == sorted([(process["dram"], process["sram"]), (process["flash"], process["sram"])])
    copies = {(e["pid"], e["ts"]) for e in shown if e["ph"] == "X" and e["cat"] == "copy"}
    assert all((e["pid"], e["ts"]) in copies for e in shown if e["ph"] in {"s", "f"})
    live = [e["args"]["bytes"] for e in shown if e["name"] == "live in sram"]
    assert max(live) == 3 * 32 * 32 * 4


@pytest.mark.parametrize("threads", [0, 1])
def test_copies_of_a_copy_engine_have_a_lane_of_their_own(threads: int) -> None:
    plan = engine.make_plan(waiting(), memories=with_engine(*BOARD), optimise=0, nodes=50)
    trace, times = plan.trace(threads=threads), {copied.tick: copied for copied in plan.copy_times.copies}
    shown = _chrome(trace)
    (lane,) = {e["tid"] for e in shown if e["name"] == "thread_name" and e["args"]["name"] == "copy engine"}
    slices = {e["args"]["tick"]: e for e in shown if e["ph"] == "X" and e["cat"] == "operator"}
    assert {tick for tick, one in slices.items() if one["tid"] == lane} == times.keys()
    in_memories = [e["tid"] for e in shown if e.get("cat") == "copy" and e["ph"] == "X"]
    assert in_memories == [lane] * 2 * len(times)  # slices of one row nest, so copies in their turn have another one
    if threads:
        for tick, copied in times.items():
            assert slices[tick]["ts"] == pytest.approx(1e6 * copied.begin, abs=1e-3)
            assert slices[tick]["dur"] == pytest.approx(1e6 * (copied.end - copied.begin), abs=2e-3)
    names, events = _perfetto(trace)
    (track,) = (uuid for uuid, name in names.items() if name == "copy engine")
    assert {e.name for e in events if e.track_uuid == track and e.name} == {slices[tick]["name"] for tick in times}
    begun, ended = ([e.track_uuid for e in events if e.type == kind] for kind in (1, 2))
    assert sorted(begun) == sorted(ended)


@pytest.mark.parametrize("threads", [0, 1])
def test_chrome_has_stripes_around_their_operators_and_cascades_around_stripes(
    cascaded: ExecutionPlan, threads: int
) -> None:
    stack, inside, shown = (
        list[dict[str, Any]](),
        defaultdict[str, set[str]](set),
        _chrome(cascaded.trace(threads=threads)),
    )
    for event in shown:
        if event["ph"] == "B":
            assert len(stack) == event["name"].startswith("stripe")
            stack.append(event)
        elif event["ph"] == "E":
            assert stack.pop()["ts"] <= event["ts"]
        elif event["ph"] == "X" and stack:
            assert event["ts"] >= stack[-1]["ts"]
            inside[stack[0]["name"]].add(event["name"])
    assert not stack
    (done,) = cascaded.optimisation[0].cascades
    for number, (first, last, _) in enumerate(done.runs):
        calls = {call.name for call in cascaded.lowered.calls}
        mine = {name for stripe in done.stripes if stripe.cascade == number for name in stripe.operators}
        assert mine & calls <= inside[f"cascade {first} to {last}"]


def test_perfetto_has_tracks_of_memories_with_flows_and_slices_of_cascades(cascaded: ExecutionPlan) -> None:
    tracks, events = _perfetto(moved_tensors().trace())
    where, flows = dict[str, str](), defaultdict[int, list[str]](list)
    for event in events:
        where.setdefault(event.name, tracks[event.track_uuid].split(":")[0])
        for flow in event.flow_ids:
            flows[flow].append(event.name)
    assert (where["far"], where["unread"]) == ("dram", "flash")
    far = next(event for event in events if event.name == "far")
    assert [note.int_value for note in far.debug_annotations if note.name == "offset"] == [0]  # the first in dram
    assert ["far", "near"] in flows.values()
    assert ["w", "fetched"] in flows.values()
    _, events = _perfetto(cascaded.trace())
    stripes = len(cascaded.trace().details().stripes)
    assert sum(event.name.startswith("stripe ") for event in events) == stripes
