"""The command line: what it prints, what it writes, and how it fails."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from allocator.heaps import HEAPS
from allocator.io import minimalloc
from allocator.problem import Plan, Problem
from allocator.solvers.base import NO_NODES
from engine.api import WATCHED_NODES
from engine.cli import comparison, run
from engine.cli.main import main
from engine.planning import planner
from engine.planning.options import Options
from engine.planning.solving import solve_problem
from tests.helpers.cli.cli_checks import SOLVED, Capture, data, error
from tests.helpers.onnx.saved_models import save_perceptron, save_reshape

REPORTED = {
    *("model", "operators", "arena_bytes", "lower_bound", "gap", "naive_bytes", "dynamic_peak_bytes"),
    *("weights_bytes", "prepacked_bytes", "resident_weights_bytes", "workspace_bytes"),
    *("strategy", "status", "peak_tensors"),
}
MEASURED = {"outputs_equal", "static_seconds", "dynamic_seconds"}


def test_plan_prints_a_page(model: str, capsys: Capture) -> None:
    assert main(["plan", model]) == 0
    assert "lower bound" in capsys.readouterr().out


def test_plan_json_has_the_report_and_nothing_measured(model: str, capsys: Capture) -> None:
    printed = data(["plan", model], capsys)
    assert set(printed) >= REPORTED
    assert not set(printed) & MEASURED
    assert printed["lower_bound"] <= printed["arena_bytes"] <= printed["naive_bytes"]


def test_switches_of_the_planner_cost_memory(model: str, capsys: Capture) -> None:
    least = data(["plan", model], capsys)["arena_bytes"]
    nothing_shared = data(["plan", model, "--no-reuse", "--no-overwrite", "--no-views"], capsys)
    assert nothing_shared["arena_bytes"] >= nothing_shared["naive_bytes"] > least
    assert data(["plan", model, "--padding", "4096"], capsys)["arena_bytes"] > least + 4096


def test_plan_can_switch_overwrites_off(model: str, capsys: Capture) -> None:
    kinds = [{e["kind"] for e in data(["trace", model, *more], capsys)["events"]} for more in ([], ["--no-overwrite"])]
    always = {"grow", "begin", "alloc", "peak", "end", "free"}
    assert [kind - {"view"} for kind in kinds] == [always | {"overwrite"}, always]


@pytest.mark.parametrize("alignment", ["1", "256"])
def test_plan_alignment_holds_for_every_chunk(model: str, alignment: str, capsys: Capture) -> None:
    printed = data(["plan", model, "--alignment", alignment, "--no-overwrite"], capsys)
    assert printed["alignment"] == int(alignment)
    assert all(t["offset"] % int(alignment) == 0 for t in printed["peak_tensors"])


@pytest.mark.slow
def test_compare_finds_equal_outputs_and_equal_peaks(model: str, capsys: Capture) -> None:
    printed = data(["compare", model, "--runs", "3", "--threads", "1"], capsys)
    assert set(printed) >= REPORTED | MEASURED
    assert printed["outputs_equal"] is True
    assert printed["measured_peak_bytes"] == printed["dynamic_peak_bytes"]
    assert 0 < printed["static_seconds_min"] <= printed["static_seconds"]
    assert printed["runs"] == 3


@pytest.mark.slow
def test_compare_agrees_with_onnxruntime(model: str, capsys: Capture) -> None:
    pytest.importorskip("onnxruntime")
    printed = data(["compare", model, "--oracle", "onnxruntime", "--weights", "random", "--runs", "1"], capsys)
    assert printed["oracle"] == "onnxruntime"
    assert printed["oracle_difference"] < 1e-5 < printed["oracle_tolerance"]


def test_compare_ends_with_5_where_onnxruntime_differs_by_more_than_the_tolerance(model: str, capsys: Capture) -> None:
    pytest.importorskip("onnxruntime")
    arguments = ["compare", model, "--oracle", "onnxruntime", "--weights", "random", "--runs", "1", "--seed", "3"]
    assert main([*arguments, "--tolerance", "1"]) == 0
    assert "of at most 1.0e+00" in capsys.readouterr().out
    assert main([*arguments, "--tolerance", "0"]) == 5
    assert "MORE than 0.0e+00" in capsys.readouterr().out


@pytest.mark.parametrize("tolerance", ["-1", "nan", "inf", "much"])
def test_compare_refuses_a_tolerance_that_is_no_number_from_0_on(model: str, tolerance: str, capsys: Capture) -> None:
    assert "no number from 0 on" in error(["compare", model, f"--tolerance={tolerance}"], 2, capsys)


@pytest.mark.slow
def test_compare_prints_times_and_the_peak(model: str, capsys: Capture) -> None:
    assert main(["compare", model, "--runs", "1", "--top", "1"]) == 0
    shown = capsys.readouterr().out
    assert "equal to the bit" in shown and "static run" in shown and "peak in tick" in shown


def test_compare_ends_with_5_where_outputs_differ(model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "equal_outputs", lambda *_: False)
    assert main(["compare", model, "--runs", "1", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["outputs_equal"] is False


def test_a_refusal_by_a_judge_ends_with_5(model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_peak", lambda _: 1)
    assert "peak" in error(["compare", model, "--runs", "1"], 5, capsys)


def test_a_fault_of_the_program_ends_with_6_and_says_where(
    model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setattr(comparison, "_peak", fail)
    assert main(["compare", model, "--runs", "1"]) == 6
    *above, last = capsys.readouterr().err.splitlines()
    assert "Traceback (most recent call last):" in above
    assert last.startswith(
        "arenaplan: error: running the command: ZeroDivisionError: nothing to divide. This is a fault of arenaplan"
    )


def test_compare_same_compares_every_bit() -> None:
    zero = np.zeros(2, np.float32)
    assert comparison.equal_outputs({"y": zero}, {"y": zero.copy()})
    assert not comparison.equal_outputs({"y": zero}, {"y": -zero})
    assert not comparison.equal_outputs({"y": zero}, {"y": zero.view(np.int32)})
    assert not comparison.equal_outputs({"y": zero}, {"z": zero})


@pytest.mark.parametrize("mode", run.MODES)
def test_run_prints_the_same_outputs_in_all_modes(model: str, mode: str, capsys: Capture) -> None:
    printed = data(["run", model, "--mode", mode], capsys)
    assert printed["mode"] == mode and printed[f"{mode}_seconds"] > 0
    assert printed["outputs"] == data(["run", model], capsys)["outputs"]


def test_run_seed_decides_inputs_and_weights(model: str, capsys: Capture) -> None:
    zero, again, one = (data(["run", model, "--seed", s], capsys)["outputs"] for s in "001")
    assert zero == again != one
    assert data(["run", model, "--weights", "random"], capsys)["outputs"] != zero


def test_run_writes_outputs_to_a_folder_and_to_an_archive(model: str, tmp_path: Path, capsys: Capture) -> None:
    feed = tmp_path / "x.npy"
    np.save(feed, np.ones((4, 8), np.float32))
    for target in (tmp_path / "y", tmp_path / "y", tmp_path / "y.npz"):
        assert main(["run", model, "--input", f"x={feed}", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    with np.load(tmp_path / "y.npz") as archive:
        assert np.array_equal(archive["y"], np.load(tmp_path / "y" / "y.npy"))
        assert np.allclose(archive["y"].sum(axis=1), 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y", "y.npz"]


def test_given_shapes_and_inputs_fill_in_symbolic_dimensions(tmp_path: Path, capsys: Capture) -> None:
    path, feed = str(save_perceptron(tmp_path / "open.onnx", "n")), tmp_path / "x.npy"
    np.save(feed, np.ones((5, 8), np.float32))
    assert data(["run", path, "--shape", "x=2,8"], capsys)["outputs"][0]["shape"] == [2, 3]
    assert data(["run", path, "--input", f"x={feed}"], capsys)["outputs"][0]["shape"] == [5, 3]
    assert "--dim n=1" in error(["plan", path], 1, capsys)
    assert data(["run", path, "--dim", "n=4"], capsys)["outputs"][0]["shape"] == [4, 3]


def test_an_input_that_decides_a_shape_can_be_fixed(tmp_path: Path, capsys: Capture) -> None:
    path, fixed = str(save_reshape(tmp_path / "reshape.onnx")), tmp_path / "shape.npy"
    np.save(fixed, np.array([6]))
    assert data(["run", path, "--constant", f"shape={fixed}"], capsys)["outputs"][0]["shape"] == [6]
    assert "'shape'" in error(["plan", path], 1, capsys)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("format_", ["table", "csv", "json", "chrome"])
def test_a_trace_is_the_same_on_stdout_and_in_a_file(
    model: str, mode: str, format_: str, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "trace"
    command = ["trace", model, "--mode", mode, "--format", format_]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert main([*command, "-o", str(target)]) == 0
    assert target.read_text() == shown != ""
    assert [p.name for p in tmp_path.iterdir()] == ["trace"]


def test_solve_places_buffers_and_writes_them(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "placed.csv"
    printed = data(["solve", buffers, "-o", str(target)], capsys)
    assert set(printed) == SOLVED
    assert printed["buffers"] == 3 and printed["arena_bytes"] == printed["lower_bound"] == 30
    assert printed["status"] == "optimal"
    problem, ids = minimalloc.read(target, pinned=True)
    assert dict(zip(ids, problem.pinned.tolist(), strict=True)) == printed["offsets"]


@pytest.mark.parametrize(
    "words",
    [
        ["plan"],
        ["run"],
        ["compare"],
        ["compare", "--measure"],
        ["compare", "--parallel"],
        ["heaps"],
        ["trace", "--real"],
    ],
    ids=" ".join,
)
def test_no_command_recomputes_where_recomputing_is_switched_off(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """With the least budget below the arena, which a few more operators would meet."""
    network = "zoo:squeezenet?image=32&optimiser=sgd"
    budget = str(data(["plan", network], capsys)["arena_bytes"] - 1)
    monkeypatch.setattr("engine.remat.planning.plan_recomputed", pytest.fail)
    assert main([*words, network, "--budget", budget, "--no-recompute"]) == 3


def test_solve_aligns_and_keeps_a_budget(buffers: str, capsys: Capture) -> None:
    assert main(["solve", buffers, "--alignment", "64", "--strategy", "greedy_by_size"]) == 0
    assert "optimal" in capsys.readouterr().out
    assert main(["solve", buffers, "--budget", "29"]) == 3
    assert "1 bytes too much" in capsys.readouterr().err


def test_a_plan_over_budget_ends_with_3_and_names_tensors(model: str, capsys: Capture) -> None:
    assert main(["plan", model, "--budget", "100 B"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("arenaplan: error: ") and "100 bytes" in shown.err and "offset" in shown.err
    assert "proved: no plan" in shown.err
    assert main(["plan", model, "--budget", "1 MiB"]) == 0


@pytest.mark.parametrize("command", ["plan", "run", "compare", "trace"])
def test_plan_limits_reach_the_planner(model: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, int]] = []

    def spy(problem: Problem, options: Options, budget: int) -> Plan:
        is_within = 0 < options.timeout <= 0.5  # what is left of it
        seen.append((0.5 if is_within else options.timeout, options.nodes))
        return solve_problem(problem, options, budget)

    monkeypatch.setattr(planner, "solve_problem", spy)
    assert main([command, model, "--timeout", "500ms", "--nodes", "12"]) == 0
    assert main([command, model]) == 0
    watched = {(math.inf, WATCHED_NODES)} if command == "compare" else set()
    assert set(seen) == {(0.5, 12), (math.inf, NO_NODES)} | watched


def test_help_and_version_end_with_0(capsys: Capture) -> None:
    for arguments in (["--version"], ["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert "arenaplan" in capsys.readouterr().out


def test_a_run_without_elements_or_finite_numbers_still_gives_json() -> None:
    statistics = run._statistics(
        {"none": np.zeros((0, 2)), "infinite": np.array([np.inf, -np.inf]), "yes": np.array(True)}
    )
    assert [t["mean"] for t in statistics] == [None, None, 1.0]
    assert statistics[1]["max"] is None and statistics[0]["shape"] == [0, 2]
    assert "scalar" in run._table({"yes": np.array(True)})


def test_compare_parallel_measures_every_policy_against_the_sequence(model: str, capsys: Capture) -> None:
    printed = data(["compare", model, "--parallel", "--threads", "2", "--runs", "2"], capsys)
    policies = printed["policies"]
    assert [p["policy"] for p in policies] == ["sequence", "exact", "colour:8", "levels", "edges"]
    assert all(p["outputs_equal"] and p["arena_bytes"] >= p["lower_bound"] for p in policies)
    assert policies[0]["measured"] == policies[0]["parallelism_by_count"] == 1
    assert policies[4]["arena_bytes"] == policies[0]["arena_bytes"]
    assert main(["compare", model, "--parallel", "--runs", "1"]) == 0
    assert "equal to the bit" in capsys.readouterr().out


def test_compare_parallel_takes_no_oracle(model: str, capsys: Capture) -> None:
    assert "leave out" in error(["compare", model, "--parallel", "--oracle", "onnxruntime"], 2, capsys)


@pytest.mark.parametrize("policy", ["exact", "colour:2", "levels", "edges"])
def test_a_policy_is_planned_and_run(model: str, policy: str, capsys: Capture) -> None:
    assert data(["plan", model, "--parallel", policy], capsys)["parallel"] == policy
    plain = data(["run", model, "--seed", "3"], capsys)["outputs"]
    assert data(["run", model, "--seed", "3", "--parallel", policy, "--threads", "2"], capsys)["outputs"] == plain
    assert data(["run", model, "--seed", "3", "--parallel", policy, "--mode", "poison"], capsys)["outputs"] == plain


def test_plan_refuses_an_unknown_policy(model: str, capsys: Capture) -> None:
    for name in ("colour", "colour:0", "exact:2", "fast"):
        assert "is no policy" in error(["plan", model, "--parallel", name], 2, capsys)


def test_a_dynamic_run_has_no_policy(model: str, capsys: Capture) -> None:
    assert "plans an arena" in error(["run", model, "--parallel", "exact", "--mode", "dynamic"], 2, capsys)


@pytest.mark.slow
def test_heaps_that_evict_keep_within_a_budget_as_the_plan_does(capsys: Capture) -> None:
    printed = data(["heaps", "zoo:random_wired?image=32", "--evict", "coop", "--budget", "80KiB"], capsys)
    assert printed["plan"]["arena_bytes"] <= printed["budget_bytes"] == 80 * 1024
    heaps = {row["heap"]: row for row in printed["heaps"]}
    assert list(heaps) == list(HEAPS)
    fit = heaps["best_fit"]
    assert fit["evictions"] > 0
    assert 1 < fit["slowdown"] < 2
    assert printed["plan"]["smallest_budget"] <= 80 * 1024 and 1 < printed["plan"]["smallest_slowdown"] < 3
    assert fit["smallest_budget"] <= 80 * 1024 >= fit["peak_reserved"]
    assert "the heap refcount has none" in heaps["refcount"]["note"]
    assert "pytorch has no" in heaps["pytorch"]["note"] and heaps["pytorch"]["smallest_budget"] > 1e6


def test_eviction_asks_for_a_budget_and_says_where_it_cannot_keep_to_it(model: str, capsys: Capture) -> None:
    heaps = ["heaps", model, "--evict", "lru"]
    assert main([*heaps, "--budget", "64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:4] == ["plan", "does", "not", "fit"]
    assert any(line.startswith("plan: the plan needs") for line in lines)
    for command in ("heaps", "compare", "run"):
        mode = ["--mode", "dynamic"] if command == "run" else []
        refused = error([command, model, *mode, "--evict", "lru"], 2, capsys)
        assert "evict='lru' keeps within a budget; give one" in refused
    assert "in mode 'static' the plan recomputes" in error(
        ["run", model, "--evict", "lru", "--budget", "1KiB"], 2, capsys
    )
    assert "leave out --capacity and --timeline" in error([*heaps, "--budget", "1KiB", "--timeline"], 2, capsys)


def test_a_real_trace_tells_when_operators_ran(model: str, capsys: Capture) -> None:
    events = data(["trace", model, "--real", "--parallel", "exact", "--threads", "2", "--optimise", "0"], capsys)[
        "events"
    ]
    ran = [e for e in events if e["kind"] == "end"]
    assert len(ran) == 4
    assert all(e["seconds"] > 0 and e["thread"] >= 0 for e in ran)
    assert {e["kind"] for e in events} - {"view"} == {"grow", "begin", "end", "alloc", "overwrite", "free", "peak"}


def test_heaps_need_no_less_than_what_is_requested_and_say_when_memory_is_out(model: str, capsys: Capture) -> None:
    printed = data(["heaps", model, "--timeline"], capsys)
    assert [h["heap"] for h in printed["heaps"]] == list(HEAPS)
    peak = data(["plan", model], capsys)["dynamic_peak_bytes"]
    for heap in printed["heaps"]:
        assert heap["peak_requested"] == peak == max(heap["timeline"]["live"])
        assert heap["peak_reserved"] == max(heap["timeline"]["reserved"]) >= peak
        assert heap["allocs"] == heap["frees"]
    small = data(["heaps", model, "--capacity", "1KiB"], capsys)["heaps"]
    assert {(h["failed_tick"], h["failed_operator"]) for h in small if h["heap"] == "buddy"} == {(0, "feed")}
    assert {h["heap"] for h in small if "note" in h} >= {"pytorch", "buddy"}
    assert main(["heaps", model, "--capacity", "1KiB"]) == 0
    assert "out of memory in tick 0, at 'x' of feed: pytorch has no" in capsys.readouterr().out
