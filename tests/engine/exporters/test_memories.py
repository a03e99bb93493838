"""Formats of one address axis, or of none, tell of several memories: where each tensor lies, copies, and their cost."""

import csv
import json
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine import ExecutionPlan, Trace, read_trace
from engine.report.memories import Transfers
from engine.trace.trace import ARRIVALS
from tests.helpers.traces.copied_beside import copied_beside
from tests.helpers.traces.exported_files import exported, written


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return copied_beside()


@pytest.fixture(scope="module")
def transfers(plan: ExecutionPlan) -> Transfers:
    (transfers,) = plan.report().transfers
    assert {move.leaves for move in transfers.moves} == {"fast", "slow", "flash"}
    assert transfers.copy_seconds
    return transfers


def _memory_of(plan: ExecutionPlan) -> dict[str, tuple[str, int]]:
    """Returns memory and offset there of each tensor that owns a chunk, from the assignment and not from addresses."""
    (placed,) = plan.memories
    owners = plan.owners(plan.chunks)
    return {
        owners[chunk].name: (
            placed.memories[int(placed.assigned.memory[chunk])].name,
            int(placed.assigned.offset[chunk]),
        )
        for chunk in range(len(plan.chunks))
    }


def _at_peak(plan: ExecutionPlan) -> Counter[str]:
    """Returns the bytes that are alive at the peak, by memory."""
    report, where = plan.report(), _memory_of(plan)
    bytes_in = Counter[str]()
    for tensor in report.peak_tensors:
        bytes_in[where[tensor.name][0]] += tensor.bytes
    assert len(bytes_in) == 2
    return bytes_in


def test_a_table_has_the_memory_of_each_tensor_and_says_what_is_copied(
    plan: ExecutionPlan, transfers: Transfers
) -> None:
    lines, where = written("table", plan.trace()).splitlines(), _memory_of(plan)
    rows = [re.split(r"  +", line.strip()) for line in lines]
    begun = {row[3]: row for row in rows if len(row) >= 7 and row[2] != "free" and not row[2].startswith("in ")}
    assert {name: (row[4], int(row[5])) for name, row in begun.items() if name in where} == where
    copies = {int(row[0]): row[2] for row in begun.values() if row[2].startswith("copy")}
    assert copies == {move.tick: f"copy from {move.leaves}" for move in transfers.moves}
    for share in transfers.memories:
        assert any(line.startswith(f"{share.name}: ") for line in lines)


def test_a_table_with_times_says_what_the_copy_engine_makes(plan: ExecutionPlan) -> None:
    lines = written("table", plan.trace(threads=1)).splitlines()
    ticks = {int(line.split()[0]) for line in lines if line.endswith("copy engine")}
    assert ticks == {copied.tick for copied in plan.copy_times.copies}


def test_a_map_has_a_band_for_each_memory_with_tensors(plan: ExecutionPlan) -> None:
    text, where = written("map", plan.trace()), _memory_of(plan)
    titles = re.findall(r"│(\w+): .* used", text)
    assert titles == ["slow", "fast"]
    listed = re.findall(r"^  \S (\S+) .* at ([\d,]+) of (\w+)$", text, re.MULTILINE)
    assert {name: (memory, int(at.replace(",", ""))) for name, at, memory in listed}.items() <= where.items()
    assert len(listed) == len(plan.report().peak_tensors) < len(where)
    rows = [line.split("│")[1] for line in text.splitlines() if "│" in line]
    low = rows.index(next(row for row in rows if row.startswith("fast: ")))
    drawn = Counter(name for name in where for row in rows[:low] if f" {name} " in row)
    assert drawn and all(where[name][0] == "slow" for name in drawn)
    assert 3 == low - 1 < len(rows) - low - 1


def test_csv_has_the_memory_of_each_tensor_and_is_read_again(plan: ExecutionPlan, tmp_path: Path) -> None:
    trace, where = plan.trace(), _memory_of(plan)
    rows = list(csv.DictReader(written("csv", trace).splitlines()))
    assert {row["tensor"]: row["memory"] for row in rows if row["kind"] in ARRIVALS} == {
        name: memory for name, (memory, _) in where.items()
    }
    assert {row["memory"] for row in rows if row["offset"] == "-1"} == {""}
    (path := tmp_path / "t.csv").write_bytes(exported("csv", trace))
    assert list(read_trace(path)) == list(trace)


def test_massif_has_memories_above_what_is_alive_at_the_peak(plan: ExecutionPlan) -> None:
    text = written("massif", plan.trace())
    assert {name: int(size) for size, name in re.findall(r"^ n\d+: (\d+) (.*)$", text, re.MULTILINE)} == _at_peak(plan)
    assert re.search(r"^desc: .*; fast: .* used, transfers .*; flash: ", text)


def _speedscope(trace: Trace) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Returns the profiles by name, and the names of the frames."""
    file = json.loads(exported("speedscope", trace))
    return {p["name"]: p for p in file["profiles"]}, [frame["name"] for frame in file["shared"]["frames"]]


def test_speedscope_has_memories_around_the_tensors_of_the_peak_and_what_transfers_take(
    plan: ExecutionPlan, transfers: Transfers
) -> None:
    profiles, frames = _speedscope(plan.trace())
    peak, weights, times = profiles.values()
    alive, places = Counter[str](), dict[str, str]()
    for stack, size in zip(peak["samples"], peak["weights"], strict=True):
        alive[frames[stack[0]]] += size
    assert alive == _at_peak(plan)
    for stack in weights["samples"]:
        places[frames[stack[-1]]] = frames[stack[0]]
    assert places == {weight.name: share.name for share in transfers.memories for weight in share.weights}
    taken = {frames[stack[0]]: weight for stack, weight in zip(times["samples"], times["weights"], strict=True)}
    assert taken == {share.name: round(share.seconds * 1e9) for share in transfers.memories}


def test_speedscope_has_the_copy_engine_as_a_thread(plan: ExecutionPlan) -> None:
    profiles, _ = _speedscope(plan.trace(threads=1))
    opened = [round(event["at"]) for event in profiles["copy engine"]["events"] if event["type"] == "O"]
    assert opened == [round(copied.begin * 1e9) for copied in plan.copy_times.copies]
    assert "operators, thread 0" in profiles and "operators, thread 1" not in profiles


def test_a_memory_snapshot_has_a_segment_for_each_memory_with_tensors(
    plan: ExecutionPlan, transfers: Transfers
) -> None:
    snapshot = pickle.loads(exported("pytorch", plan.trace()))  # written two words before
    base = snapshot["segments"][0]["address"]
    shares = [share for share in transfers.memories if share.arena_bytes]
    assert [(s["address"] - base, s["total_size"]) for s in snapshot["segments"]] == [
        (share.start, share.arena_bytes) for share in shares
    ]
    where = _memory_of(plan)
    for event in snapshot["device_traces"][0]:
        frames = {frame["filename"]: frame["name"] for frame in event["frames"]}
        if "tensor" in frames:
            assert frames["memory"] == where[frames["tensor"].split()[0]][0]


@pytest.mark.parametrize("name", ["table", "map", "csv", "massif", "speedscope", "pytorch"])
def test_a_saved_trace_in_several_memories_has_them_but_no_copies(
    plan: ExecutionPlan, name: str, tmp_path: Path
) -> None:
    (path := tmp_path / "t.json").write_bytes(exported("json", plan.trace(threads=1)))
    assert b"slow" in (content := exported(name, read_trace(path)))
    assert b"copy from" not in content and b"copy engine" not in content
