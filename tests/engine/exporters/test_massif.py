"""Files for ms_print: the peak is among the snapshots, its tree adds up, and ms_print itself can read them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from attrs import frozen
from hypothesis import given, settings

import engine
import ops
from engine import Graph, Trace, zoo
from engine.exporters.massif import SNAPSHOTS
from engine.trace.trace import PEAK
from tests.helpers.traces.exported_files import exported, written
from tests.helpers.traces.sample_traces import EMPTY, any_traces, hostile, peak, staged

needs_ms_print = pytest.mark.skipif(shutil.which("ms_print") is None, reason="ms_print is missing: install valgrind")
_NODE = re.compile(r"( *)n(\d+): (\d+) (.*)")


@frozen
class Snapshot:
    """The record of one time in a file."""

    time: float
    heap: int
    extra: int
    tree: list[str]


def _snapshots(text: str) -> list[Snapshot]:
    blocks = re.split(r"#-+\nsnapshot=\d+\n#-+\n", text)[1:]
    return [_snapshot(block.splitlines()) for block in blocks]


def _snapshot(lines: list[str]) -> Snapshot:
    values = dict(line.split("=", 1) for line in lines[:5])
    assert values["mem_stacks_B"] == "0" and values["heap_tree"] == ("peak" if lines[5:] else "empty")
    return Snapshot(float(values["time"]), int(values["mem_heap_B"]), int(values["mem_heap_extra_B"]), lines[5:])


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_massif_has_the_peak_among_few_snapshots_in_order(trace: Trace) -> None:
    snapshots = _snapshots(written("massif", trace))
    assert len(snapshots) <= SNAPSHOTS + 3
    assert [s.time for s in snapshots] == sorted(s.time for s in snapshots)
    assert max(s.heap + s.extra for s in snapshots) == peak(trace)
    peaks = [e for e in trace if e.kind == PEAK]
    assert [s.heap + s.extra for s in snapshots if s.tree] == [e.bytes for e in peaks if e.bytes]


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_each_part_of_the_tree_is_the_sum_of_its_parts(trace: Trace) -> None:
    for snapshot in _snapshots(written("massif", trace)):
        if snapshot.tree:
            lines = [_NODE.fullmatch(line) for line in snapshot.tree]
            nodes = [(len(m[1]), int(m[2]), int(m[3])) for m in lines if m]
            assert len(nodes) == len(lines) and nodes[0][2] == snapshot.heap
            _check(nodes, 0)


def _check(nodes: list[tuple[int, int, int]], at: int) -> int:
    """Checks a node and all below it; returns the node behind them."""
    depth, children, size = nodes[at]
    after, total = at + 1, 0
    for _ in range(children):
        assert nodes[after][0] == depth + 1
        total += nodes[after][2]
        after = _check(nodes, after)
    assert not children or total == size
    return after


def _printed(trace: Trace, folder: Path) -> str:
    file = folder / "massif.out"
    file.write_bytes(exported("massif", trace))
    done = subprocess.run(["ms_print", file], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_massif_says_that_a_run_has_no_bytes() -> None:
    graph = Graph("nothing")
    graph.output(ops.relu(graph.input("x", (0, 3))), "y")
    for trace in (engine.make_plan(graph, optimise=0).trace(), EMPTY):
        assert written("massif", trace).splitlines()[0].endswith(", nothing is ever alive")
    assert "nothing is ever alive" not in written("massif", staged(1))


@needs_ms_print
def test_ms_print_draws_the_graph_and_says_what_the_peak_is_made_of(tmp_path: Path) -> None:
    plan = engine.make_plan(zoo.squeezenet(), padding=64, optimise=0)
    report, text = plan.report(), _printed(plan.trace(), tmp_path)
    assert re.search(rf"^ *\d+ +\d+ +{report.peak_bytes:,} ", text, re.MULTILINE)
    assert f"(tensors alive at the peak, in {report.peak_operator})" in text
    largest = report.peak_tensors[0]
    assert re.search(rf"->[\d.]+% \([\d,]+B\) {largest.name} \[", text)
    assert re.search(r"Detailed snapshots: \[\d+ \(peak\)\]", text)


@needs_ms_print
@pytest.mark.parametrize("trace", [hostile(staged(2)), EMPTY, staged(1, "dynamic")], ids=["hostile", "empty", "timed"])
def test_ms_print_reads_every_file(trace: Trace, tmp_path: Path) -> None:
    assert f"{peak(trace):,}" in _printed(trace, tmp_path)
