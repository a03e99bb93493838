"""One peak in all formats: each file, read in its own way, tells the bytes that the report of the plan tells."""

import base64
import csv
import gzip
import io
import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import accumulate
from typing import Any

import pytest

import engine
from engine import ExecutionPlan, zoo
from engine.exporters import FORMATS
from engine.units import format_bytes
from tests.exports import exported
from tests.graphs import build, seeded

UNREAD = {"png"}
"""A picture of dots; that of the same shapes as SVG is read."""


def _told(data: bytes) -> int:
    [size] = re.findall(r"peak: (?:.*\()?([\d,]+) bytes\)? alive|peak: (\d+) B alive", data.decode())
    return int("".join(size).replace(",", ""))


def _csv(data: bytes) -> int:
    return max(int(row["live_bytes"]) for row in csv.DictReader(io.StringIO(data.decode())))


def _json(data: bytes) -> int:
    read = json.loads(data)
    assert read["facts"]["peak_bytes"] == max(e["bytes"] for e in read["events"] if e["kind"] == "peak")
    return int(max(e["live_bytes"] for e in read["events"]))


def _chrome(data: bytes) -> int:
    """The counter, the instant and the sum of the slices that are open."""
    events = json.loads(data)["traceEvents"]
    [instant] = [e["args"]["bytes"] for e in events if e["name"] == "peak"]
    size = {e["id"]: e["args"]["bytes"] for e in events if e["ph"] == "b"}
    opened = max(accumulate({"b": 1, "e": -1}.get(e["ph"], 0) * size[e["id"]] for e in events if "id" in e))
    assert opened == instant
    return int(max(e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"] == "live"))


def _perfetto(data: bytes) -> int:
    packets = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace.FromString(data).packet
    [live] = [p.track_descriptor.uuid for p in packets if p.track_descriptor.name == "live bytes"]
    return int(max(p.track_event.counter_value for p in packets if p.track_event.track_uuid == live))


def _pytorch(data: bytes) -> int:
    sign = {"alloc": 1, "free_completed": -1}
    [events] = pickle.loads(data)["device_traces"]
    return int(max(accumulate(sign.get(e["action"], 0) * e["size"] for e in events)))


def _massif(data: bytes) -> int:
    """The snapshot that is said to be the peak, which is the highest."""
    found = re.findall(r"mem_heap_B=(\d+)\nmem_heap_extra_B=(\d+)\n.*\nheap_tree=(\w+)", data.decode())
    totals = [(int(heap) + int(extra), tree) for heap, extra, tree in found]
    [peak] = [total for total, tree in totals if tree == "peak"]
    assert peak == max(total for total, _ in totals)
    return peak


def _speedscope(data: bytes) -> int:
    return int(sum(json.loads(data)["profiles"][0]["weights"]))


def _megengine(data: bytes) -> int:
    """A chunk that takes over the bytes of another lives one tick less than is told, as MegEngine's reader has it."""
    chunks = [c for c in json.loads(data)["chunk"].values() if c["type"] == "static_mem"]
    return max(_change_sums(list(_changes(chunks))))


def _changes(chunks: list[dict[str, str]]) -> Iterator[tuple[int, int]]:
    for chunk in chunks:
        size = int(chunk["logic_addr_end"]) - int(chunk["logic_addr_begin"])
        yield int(chunk["time_begin"]) + (chunk["overwrite_dest_id"] != "-1"), size
        yield int(chunk["time_end"]), -size


def _change_sums(changes: list[tuple[int, int]]) -> Iterator[int]:
    """In a tick, what goes goes first."""
    return accumulate(size for _, size in sorted(changes))


def _model_explorer(data: bytes) -> int:
    return max(int(told["value"]) for told in json.loads(data)["results"].values())


def _html(data: bytes) -> int:
    """Of the packed columns of the page."""
    [packed] = re.findall(rb'<script class="payload" type="text/plain">([^<]+)<', data)
    raw = gzip.decompress(base64.b64decode(packed))
    facts: dict[str, Any] = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])["facts"]
    return int(facts["peak_bytes"])


READERS: Mapping[str, Callable[[bytes], int]] = {
    "table": _told,
    "map": _told,
    "csv": _csv,
    "json": _json,
    "chrome": _chrome,
    "perfetto": _perfetto,
    "pytorch": _pytorch,
    "massif": _massif,
    "speedscope": _speedscope,
    "megengine": _megengine,
    "model-explorer-alive": _model_explorer,
    "html": _html,
}


@pytest.fixture(scope="module", params=["squeezenet", "padded", "random", "parallel"])
def plan(request: pytest.FixtureRequest) -> ExecutionPlan:
    """Plans that peak while an operator runs."""
    graph = build(seeded(3), 20) if request.param == "random" else zoo.squeezenet()
    padding = 100 if request.param == "padded" else 0
    return engine.make_plan(graph, padding=padding, parallel="exact" if request.param == "parallel" else "")


@pytest.mark.parametrize("name", READERS)
def test_the_peak_of_every_format_is_that_of_the_report(plan: ExecutionPlan, name: str) -> None:
    assert READERS[name](exported(name, plan.trace())) == plan.report().peak_bytes


@pytest.mark.parametrize(
    "name", sorted({"table", "csv", "json", "chrome", "perfetto", "pytorch", "massif", "speedscope"})
)
def test_the_peak_of_reference_counting_is_that_of_the_report(plan: ExecutionPlan, name: str) -> None:
    report = plan.report()
    for heap in ("", "pytorch"):
        assert READERS[name](exported(name, plan.trace("dynamic", heap=heap))) == report.dynamic_peak_bytes


def test_a_picture_says_the_peak_in_words(plan: ExecutionPlan) -> None:
    told = f", {format_bytes(plan.report().peak_bytes)} are alive."
    assert told in re.findall("<desc>(.*)</desc>", exported("svg", plan.trace()).decode())[0]


def test_every_format_is_read() -> None:
    others = {name for name in FORMATS if name.startswith("model-explorer-")}  # tell other measures than what is alive
    assert READERS.keys() | UNREAD | {"svg"} | others == FORMATS.keys()
