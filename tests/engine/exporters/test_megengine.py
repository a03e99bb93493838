"""MegEngine's StaticMemoryInfo.json of a trace: read back, and as its analyser reads it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.check.offsets import check
from allocator.io import megengine_record
from engine import ExecutionPlan, Graph
from engine.cli.main import main
from engine.text.errors import OptionError
from tests.helpers.cli.cli_checks import Capture, data
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.traces.exported_files import exported, written

HOSTILE = ("-1", '"\n</script><script>alert(1)</script>', "\ud800", "y" * 10_000, "weights")


def analysed(text: str) -> tuple[int, int, list[int]]:
    """Returns peak address, bytes of weights and bytes alive in each operator, as graph_info_analyze.py does."""
    record = json.loads(text)
    peak = weights = 0
    alive = {name: 0 for name in record["opr"]}
    for chunk in record["chunk"].values():
        low, high = int(chunk["logic_addr_begin"]), int(chunk["logic_addr_end"])
        if chunk["type"] == "weight_mem":
            weights += high - low
            continue
        peak = max(peak, high)
        for tick in range(int(chunk["time_begin"]) + (chunk["overwrite_dest_id"] != "-1"), int(chunk["time_end"])):
            alive[str(tick)] += high - low
    return peak, weights, list(alive.values())


def rows(plan: Any, offset: Any) -> list[tuple[int, ...]]:
    return sorted(zip(*(c.tolist() for c in (plan.begin, plan.end, plan.size, offset)), strict=True))


@given(graphs(), st.booleans(), st.sampled_from((0, 16)))
@settings(max_examples=30, deadline=None)
def test_a_megengine_export_is_read_back(graph: Graph, overwrite: bool, padding: int) -> None:
    plan = engine.make_plan(graph, overwrite=overwrite, padding=padding, optimise=0)
    text = written("megengine", plan.trace())
    record = megengine_record.parse(text.encode())
    assert rows(record.problem, record.offset) == rows(plan.problem, plan.plan.offset)
    assert record.arena_bytes == plan.arena_bytes
    assert check(record.problem, record.offset, record.arena_bytes) is None
    assert pairs(record) == {
        (names(plan)[src], names(plan)[dest])
        for src, dest in zip(plan.problem.src.tolist(), plan.problem.dest.tolist(), strict=True)
    }
    assert analysed(text)[:2] == (plan.arena_bytes, plan.resident_weights_bytes)


def pairs(record: Any) -> set[tuple[str, str]]:
    ids = record.ids
    return {(ids[a], ids[b]) for a, b in zip(record.problem.src.tolist(), record.problem.dest.tolist(), strict=True)}


def names(plan: ExecutionPlan) -> list[str]:
    owners = plan.owners(plan.chunks)
    return [owners[chunk].name for chunk in range(len(plan.problem))]


def hostile() -> Graph:
    graph = Graph("names")
    for name in HOSTILE:
        y = ops.relu(graph.input(name, (3,)) + graph.constant(np.ones(3, np.float32)))
        graph.output(y, name + "!")
    return graph


def test_tensors_and_operators_have_their_names() -> None:
    graph = hostile()
    plan = engine.make_plan(graph, optimise=0)
    text = written("megengine", plan.trace())
    record = json.loads(text)
    assert text.isascii()
    assert set(record["chunk"]) >= {"-1#2", *HOSTILE[1:], "_weights"}
    assert record["chunk"]["_weights"]["type"] == "weight_mem"
    operators = [opr["name"] for opr in record["opr"].values()]
    assert operators[0] == "feed" and operators[1] == graph.operators[0].name


def test_the_analyser_finds_the_peak_of_the_report() -> None:
    plan = engine.make_plan(hostile(), optimise=0)
    report = plan.report()
    peak, weights, alive = analysed(written("megengine", plan.trace()))
    assert (peak, weights, max(alive)) == (report.arena_bytes, report.resident_weights_bytes, report.peak_bytes)


def test_megengine_export_refuses_a_trace_without_a_plan() -> None:
    with pytest.raises(OptionError, match="holds one static plan"):
        exported("megengine", engine.make_plan(hostile(), optimise=0).trace("dynamic"))


def test_the_command_line_solves_what_it_has_told(tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "StaticMemoryInfo.json")
    assert main(["trace", "zoo:squeezenet?image=64", "--format", "megengine", "-o", path]) == 0
    needed = data(["plan", "zoo:squeezenet?image=64"], capsys)["arena_bytes"]
    assert data(["solve", path], capsys)["arena_bytes"] <= needed
