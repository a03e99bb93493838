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
import ops
from engine import ExecutionPlan, Graph, zoo
from engine.exporters import FORMATS
from engine.text.units import format_bytes
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.traces.exported_files import exported

IN_TICKS = {"megengine"}
"""Formats that know no times: of operators that run at once they tell what one after the other would have alive."""
UNREAD = {"png"}
"""A picture of dots; that of the same shapes as SVG is read."""


def _peak_line(data: bytes) -> int:
    [size] = re.findall(r"peak: (?:.*\()?([\d,]+) bytes\)? alive|peak: (\d+) B alive", data.decode())
    return int("".join(size).replace(",", ""))


def _csv(data: bytes) -> int:
    return max(int(row["live_bytes"]) for row in csv.DictReader(io.StringIO(data.decode())))


def _json(data: bytes) -> int:
    read = json.loads(data)
    assert read["facts"]["peak_bytes"] == max(e["bytes"] for e in read["events"] if e["kind"] == "peak")
    return int(max(e["live_bytes"] for e in read["events"]))


def _chrome(data: bytes) -> int:
    """Returns the peak of the counter; checks the instant against the slices that are open."""
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
    """Returns the bytes of the snapshot that is marked as the peak, which must be the highest."""
    snapshots = re.findall(r"mem_heap_B=(\d+)\nmem_heap_extra_B=(\d+)\n.*\nheap_tree=(\w+)", data.decode())
    totals = [(int(heap) + int(extra), tree) for heap, extra, tree in snapshots]
    [peak] = [total for total, tree in totals if tree == "peak"]
    assert peak == max(total for total, _ in totals)
    return peak


def _speedscope(data: bytes) -> int:
    return int(sum(json.loads(data)["profiles"][0]["weights"]))


def _megengine(data: bytes) -> int:
    """Returns the peak as MegEngine's reader counts: an overwriter lives one tick less than the file has it."""
    chunks = [c for c in json.loads(data)["chunk"].values() if c["type"] == "static_mem"]
    return max(_change_sums(list(_changes(chunks))))


def _changes(chunks: list[dict[str, str]]) -> Iterator[tuple[int, int]]:
    for chunk in chunks:
        size = int(chunk["logic_addr_end"]) - int(chunk["logic_addr_begin"])
        yield int(chunk["time_begin"]) + (chunk["overwrite_dest_id"] != "-1"), size
        yield int(chunk["time_end"]), -size


def _change_sums(changes: list[tuple[int, int]]) -> Iterator[int]:
    """Yields the sums of changes of bytes; within a tick, frees come first."""
    return accumulate(size for _, size in sorted(changes))


def _model_explorer(data: bytes) -> int:
    return max(int(result["value"]) for result in json.loads(data)["results"].values())


def _html(data: bytes) -> int:
    """Returns the peak of the facts in the page's payload."""
    [packed] = re.findall(rb'<script class="payload" type="text/plain">([^<]+)<', data)
    raw = gzip.decompress(base64.b64decode(packed))
    facts: dict[str, Any] = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])["facts"]
    return int(facts["peak_bytes"])


READERS: Mapping[str, Callable[[bytes], int]] = {
    "table": _peak_line,
    "map": _peak_line,
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


_GRAPHS: Mapping[str, Callable[[], Graph]] = {
    "random": lambda: build(seeded(3), 20),
    "training": lambda: random_training(seeded(7), 5),
}


@pytest.fixture(scope="module", params=["squeezenet", "padded", "random", "parallel", "training"])
def plan(request: pytest.FixtureRequest) -> ExecutionPlan:
    """Draws plans that peak while an operator runs."""
    graph = _GRAPHS.get(request.param, zoo.squeezenet)()
    padding = 100 if request.param == "padded" else 0
    return engine.make_plan(graph, padding=padding, parallel="exact" if request.param == "parallel" else "", optimise=0)


@pytest.mark.parametrize("name", READERS)
def test_the_peak_of_every_format_is_that_of_the_report(plan: ExecutionPlan, name: str) -> None:
    assert READERS[name](exported(name, plan.trace())) == plan.report().peak_bytes


@pytest.fixture(scope="module")
def plans_at_once() -> tuple[ExecutionPlan, ...]:
    """Returns plans of operators that may run at once; some may have more alive than one run has."""
    many = [build(seeded(seed), 20) for seed in range(4)] + [random_training(seeded(seed), 5) for seed in range(3)]
    plans = tuple(
        engine.make_plan(g, parallel="exact", strategy="greedy_by_size", optimise=0) for g in (*many, _branches())
    )
    assert any(plan.report().peak_bytes > plan.trace().facts.peak_bytes for plan in plans)
    return plans


def _branches() -> Graph:
    graph = Graph("branches")
    x = graph.input("x", (64, 64))
    sides = [ops.matmul(ops.tanh(ops.matmul(x, x)), x) for _ in range(3)]
    graph.output(ops.concat(sides, 0), "y")
    return graph


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("name", READERS)
def test_a_run_has_no_more_alive_than_any_may_have(
    plans_at_once: tuple[ExecutionPlan, ...], name: str, threads: int
) -> None:
    for plan in plans_at_once:
        trace, report = plan.trace(threads=threads), plan.report()
        peak = READERS[name](exported(name, trace))
        assert peak == trace.facts.peak_bytes or (name in IN_TICKS and trace.facts.is_timed)
        assert peak <= trace.facts.possible_peak_bytes == report.peak_bytes


def test_exporters_tell_bytes_other_runs_may_have_alive(plans_at_once: tuple[ExecutionPlan, ...]) -> None:
    for trace in (plan.trace(threads=2) for plan in plans_at_once):
        most = trace.facts.possible_peak_bytes
        assert json.loads(exported("chrome", trace))["otherData"]["possible_peak_bytes"] == str(most)
        assert f"possible peak of any run {most:,} B" in exported("massif", trace).decode().splitlines()[0]
        named = json.loads(exported("speedscope", trace))["name"]
        assert (f"another run may have {most:,} bytes alive" in named) == (most > trace.facts.peak_bytes)


@pytest.mark.parametrize(
    "name", sorted({"table", "csv", "json", "chrome", "perfetto", "pytorch", "massif", "speedscope"})
)
def test_the_peak_of_reference_counting_is_that_of_the_report(plan: ExecutionPlan, name: str) -> None:
    report = plan.report()
    for heap in ("", "pytorch"):
        assert READERS[name](exported(name, plan.trace("dynamic", heap=heap))) == report.dynamic_peak_bytes


def test_a_picture_says_the_peak_in_words(plan: ExecutionPlan) -> None:
    sentence = f", {format_bytes(plan.report().peak_bytes)} are alive."
    assert sentence in re.findall("<desc>(.*)</desc>", exported("svg", plan.trace()).decode())[0]


def test_the_peak_test_reads_every_format() -> None:
    others = {name for name in FORMATS if name.startswith("model-explorer-")}  # tell other measures than what is alive
    assert READERS.keys() | UNREAD | {"svg"} | others == FORMATS.keys()
