"""Tables that commands print have each number of their rows in its column."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from attrs import evolve, fields

import engine
import ops
from allocator.problem import Bound, Plan
from engine import Graph, zoo
from engine.cli.comparison import Comparison, RunTimes
from engine.cli.main import main
from engine.cli.measure.result import Measured, Mode
from engine.cli.oracle import OracleComparison
from engine.cli.passes import PassComparison, PassCosts, compare_passes
from engine.cli.strategies import Entry, Skipped, StrategyComparison
from engine.cli.strategies import table as strategies_table
from engine.cli.strategies import to_json as strategies_json
from engine.cli.tradeoff import PolicyCosts, TradeOff
from engine.planning.placed import Optimisation
from engine.stages.cache import CacheStatistics
from engine.stages.cost_report import StageCosts, StageReport
from tests.helpers.graphs.sample_report import sample_report
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.small_models import model, node, value

Capture = pytest.CaptureFixture[str]
KIB = 1024


def cells(line: str) -> list[str]:
    """Returns the cells of a line of a table, which two blanks or more separate."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_compare_parallel_shows_both_times_of_each_policy_and_their_ratio() -> None:
    sequence = PolicyCosts("sequence", 4000, 3900, 1.0, 1.0, 1.0, 1.0, 0.012, 0.012, True)
    exact = PolicyCosts("exact", 5000, 4900, 2.25, 1.75, 1.6, 1.25, 0.010, 0.0125, True)
    tradeoff = TradeOff("net", 4, 7, (sequence, exact))
    head, names, first, second, *notes = tradeoff.text().splitlines()
    assert head == "net: 4 threads, medians of 7 runs; outputs equal to the bit"
    assert cells(names) == [
        *("policy", "arena", "of sequence", "at once", "by cost", "predicted", "measured", "time", "sequence")
    ]
    assert cells(first) == [
        *("sequence", "4000 B", "100.0%", "1.00", "1.00", "1.00 x", "1.00 x", "12.00 ms", "12.00 ms")
    ]
    assert cells(second) == ["exact", "5000 B", "125.0%", "2.25", "1.75", "1.60 x", "1.25 x", "10.00 ms", "12.50 ms"]
    assert len(notes) == 3
    row = tradeoff.to_json()["policies"][1]
    assert row == {field.name: getattr(exact, field.name) for field in fields(PolicyCosts)}


def test_compare_parallel_pairs_each_policy_with_runs_of_the_sequence(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("Exp", ["x"], ["a"]), node("Sigmoid", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])]
    onnx.save(model(nodes, [value("x", (64,))]), tmp_path / "m.onnx")
    assert main(["compare", str(tmp_path / "m.onnx"), "--parallel", "--threads", "2", "--runs", "2", "--json"]) == 0
    policies = json.loads(capsys.readouterr().out)["policies"]
    assert [row["policy"] for row in policies][:2] == ["sequence", "exact"]
    for row in policies:
        assert row["measured"] == row["sequence_seconds"] / row["seconds"]
        assert row["arena_bytes"] >= row["lower_bound"] > 0
    assert policies[0]["sequence_seconds"] == policies[0]["seconds"]


def test_compare_shows_medians_and_least_times_of_both_runs() -> None:
    runs = RunTimes({"y": np.zeros(1)}, True, (0.004, 0.001, 0.003), (0.009, 0.005, 0.008))
    report = evolve(sample_report(), evicted=())
    plan = engine.make_plan(zoo.squeezenet(image=32))
    comparison = Comparison(plan, report, runs, 7168)
    lines = comparison.text().splitlines()
    assert lines[:5] == [
        "outputs of the static, dynamic and poison runs (1): equal to the bit",
        "static run:  median     3.00 ms, least     1.00 ms, of 3",
        "dynamic run: median     8.00 ms, least     5.00 ms, of 3",
        "dynamic peak, measured: 7168 B, as predicted",
        "",
    ]
    evicting = Comparison(plan, sample_report(), runs, 7168).text().splitlines()
    assert evicting[3].startswith("dynamic peak within the budget: 7168 B; dtr: 3 evictions,")
    assert comparison.text().endswith("\n\n" + report.text())
    assert comparison.to_json() == report.to_json() | {
        "measured_peak_bytes": 7168,
        "outputs_equal": True,
        "runs": 3,
        "static_seconds": 0.003,
        "static_seconds_min": 0.001,
        "dynamic_seconds": 0.008,
        "dynamic_seconds_min": 0.005,
    }


def test_compare_oracle_tells_difference_and_tolerance() -> None:
    near, far = OracleComparison("ort", 2e-6, 1e-4), OracleComparison("ort", 3e-3, 1e-4)
    assert near.text() == "largest difference from ort: 2.0e-06 of the largest value, of at most 1.0e-04\n"
    assert far.text() == "largest difference from ort: 3.0e-03 of the largest value, MORE than 1.0e-04\n"
    assert far.to_json() == {"oracle": "ort", "oracle_difference": 3e-3, "oracle_tolerance": 1e-4} | {
        "oracle_mismatch": ""
    }


def test_compare_passes_shows_the_costs_behind_each_pass() -> None:
    rows = (
        PassCosts("as given", 30, 30, 7000, 9000, 0.008, 0.008, 0.0),
        PassCosts("fold", 30, 25, 6000, 8000, 0.005, 0.0075, 2e-7),
    )
    comparison = PassComparison("net", 3, "", 9, rows)
    head, names, first, second = comparison.text().splitlines()
    assert head == "net: passes of level 3, least of 9 runs in turn with the network as given"
    assert cells(names) == ["pass", "operators", "arena", "weights", "run", "as given", "difference"]
    assert cells(first) == ["as given", "30", "7000 B", "9000 B", "8.00 ms", "8.00 ms", "0.0e+00"]
    assert cells(second) == ["fold", "30 -> 25", "6000 B", "8000 B", "5.00 ms", "7.50 ms", "2.0e-07"]
    assert comparison.to_json()["rows"][1]["weights_bytes"] == 8000


def test_compare_passes_counts_the_weights_behind_each_pass() -> None:
    graph = zoo.squeezenet(image=32)
    comparison = compare_passes(graph, random_feeds(graph), 3, runs=1, options={"backend": "numpy"})
    assert comparison.rows[0].weights_bytes == sum(entry.nbytes for entry in graph.constants.entries.values())
    assert all(row.weights_bytes >= comparison.rows[0].weights_bytes * 0.9 for row in comparison.rows)


def test_heaps_prints_the_numbers_of_its_data(capsys: Capture) -> None:
    model = ["heaps", "zoo:squeezenet?image=64"]
    assert main([*model, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert main(model) == 0
    _, names, plan, *lines = capsys.readouterr().out.splitlines()
    assert cells(names) == ["heap", "requested", "reserved", "of arena", "fragmentation", "calls", "to system"]
    arena = data["arena_bytes"]
    assert cells(plan) == ["plan", f"{arena} B", "100.0%", "0", "1"]
    for line, row in zip(lines, data["heaps"], strict=True):
        assert cells(line) == [
            row["heap"],
            f"{row['peak_requested']} B",
            f"{row['peak_reserved']} B",
            f"{row['peak_reserved'] / arena:.1%}",
            f"{row['fragmentation']:.1%}",
            str(row["allocs"] + row["frees"]),
            str(row["segment_allocs"] + row["segment_frees"]),
        ]
    dynamic = engine.make_plan(zoo.squeezenet(image=64)).trace("dynamic")
    assert {row["peak_requested"] for row in data["heaps"]} == {dynamic.facts.peak_bytes}
    assert all(row["allocs"] == row["frees"] > 10 for row in data["heaps"])
    assert len({row["peak_reserved"] for row in data["heaps"]}) > 2


def test_the_table_of_strategies_has_arena_over_bound() -> None:
    plan = Plan(np.zeros(0), 1500, Bound(1200), "best")
    comparison = StrategyComparison((Entry(plan, 0.25),), (Skipped("slow", "too slow"),))
    _, line, skipped = strategies_table(comparison).splitlines()
    assert cells(line) == ["best", "1500", "1.2500", "0.250", "feasible"]
    assert cells(skipped) == ["slow", "-", "-", "-", "too slow"]
    numbers = {"strategy": "best", "arena_bytes": 1500, "ratio": 1.25, "seconds": 0.25, "status": "feasible"}
    assert strategies_json(comparison) == [numbers, {"strategy": "slow", "reason": "too slow"}]


def test_the_report_of_stages_has_each_number_in_its_place() -> None:
    stage = StageCosts(2, 7, "first_op", "last_op", 3 * KIB, 5 * KIB, 4 * KIB, "best", ("count",))
    report = StageReport(
        model="net",
        lengths={"n": 6},
        stages=(stage,),
        arena_bytes=5 * KIB,
        known_bytes=4 * KIB,
        known_bound=3 * KIB,
        loss=0.25,
        weights_bytes=11 * KIB,
        prepacked_bytes=13 * KIB,
        resident_weights_bytes=17 * KIB,
        cache=CacheStatistics(256, 3, 8, 5),
        optimisation=(Optimisation(3, 19, 7, (("fold", -12),)),),
    )
    head, passes, names, line, *rest = report.text().splitlines()
    assert head == "net with n=6: 1 stage(s)"
    assert passes == "optimised at level 3: 19 -> 7 operators (fold -12)"
    row: dict[str, Any] = dict(zip(cells(names), cells(line), strict=True))
    assert list(row.values()) == ["2", "7", "first_op", "last_op", "3.00 KiB", "5.00 KiB", "4.00 KiB", "count"]
    assert list(row)[4:7] == ["alive before", "arena", "lower bound"]
    assert rest == [
        "arena 5.00 KiB; one plan that knew all sizes: 4.00 KiB (+25.0%; its lower bound: 3.00 KiB)",
        "weights 11.00 KiB, prepacked 13.00 KiB, resident weights 17.00 KiB",
        "plans kept 3 of 256; 8 asked for were there, 5 were made",
    ]


@pytest.mark.slow
def test_the_report_of_stages_has_the_numbers_of_its_stages() -> None:
    graph, w = Graph("staged"), np.ones((8, 8), np.float32)
    x = graph.input("x", ("n", 8))
    is_kept = ops.greater(ops.reduce_sum(x, axes=(1,), keepdims=False), 0.0)
    graph.output(ops.compress(x @ w, is_kept, axis=0) @ w, "y")
    exe = engine.compile(graph, optimise=0)
    exe.run({"x": np.ones((16, 8), np.float32)})
    report = exe.stage_report()
    assert len(report.stages) > 1 and report.arena_bytes >= report.known_bytes
    assert report.loss == report.arena_bytes / report.known_bytes - 1
    shared = {id(e): e.nbytes for e in graph.constants.entries.values()}
    assert 2 * w.nbytes <= report.weights_bytes <= sum(shared.values())
    assert report.resident_weights_bytes == report.weights_bytes + report.prepacked_bytes


def test_the_table_of_measurements_has_a_line_for_each_figure_of_both_modes() -> None:
    static = Mode(
        *(4096, 5120, 0.25, "", 6144, 31, 7168, 0, 8192, 9216, 10_240, 11.0, 12.0, 13.0, 14.0),
        0.5,
        0.25,
        0.2,
        81_920,
        90_112,
        0.1,
        3072,
        3584,
        0.167,
    )
    dynamic = Mode(
        *(1024, 1152, 0.125, "x", 1280, 32, 1408, 0, 1536, 1664, 1792, 21.0, 22.0, 23.0, 24.0),
        0.4,
        0.3,
        0.1,
        77_824,
        None,
        None,
        2048,
        None,
        None,
    )
    text = Measured("net", 5, 3, 4096, 131_072, True, static, dynamic).text()
    lines = [cells(line) for line in text.splitlines()]
    assert text.splitlines()[0].startswith("net: 3 processes of each mode in turn, 5 runs after a first one in each; ")
    assert lines[1] == ["above the baseline", "static", "dynamic"]
    assert {row[0]: row[1:] for row in lines[2:22]} == {
        "peak, predicted": ["4096 B", "4.00 KiB", "1024 B", "1.00 KiB"],
        "peak, measured": ["5120 B", "5.00 KiB", "1152 B", "1.12 KiB"],
        "peak, sampled": ["6144 B", "6.00 KiB", "1280 B", "1.25 KiB"],
        "samples": ["31", "32"],
        "measured over predicted": ["+25.0%", "+12.5%"],
        "anonymous, predicted": ["3072 B", "3.00 KiB", "2048 B", "2.00 KiB"],
        "anonymous, measured": ["3584 B", "3.50 KiB", "-"],
        "anonymous, off by": ["+16.7%", "-"],
        "held behind the run": ["7168 B", "7.00 KiB", "1408 B", "1.38 KiB"],
        "numpy's arrays, predicted": ["8192 B", "8.00 KiB", "1536 B", "1.50 KiB"],
        "numpy's arrays, traced": ["9216 B", "9.00 KiB", "1664 B", "1.62 KiB"],
        "all that Python allocated": ["10240 B", "10.00 KiB", "1792 B", "1.75 KiB"],
        "faults of the first run": ["11 / 12", "21 / 22"],
        "faults of a later run": ["13 / 14", "23 / 24"],
        "first run": ["500.00 ms", "400.00 ms"],
        "later run, median": ["250.00 ms", "300.00 ms"],
        "later run, least": ["200.00 ms", "100.00 ms"],
        "whole process, predicted": ["81920 B", "80.00 KiB", "77824 B", "76.00 KiB"],
        "whole process, measured": ["90112 B", "88.00 KiB", "-"],
        "whole process, off by": ["+10.0%", "-"],
    }
    assert text.splitlines()[22] == "noise floor 128.00 KiB; pages of 4.00 KiB"
    assert text.splitlines()[-1] == "dynamic: off by 12%: x"
