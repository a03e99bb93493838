"""The scripts in tools/: thin, so these tests only see that they lead where they should."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allocator.solvers import STRATEGIES
from engine.api import Executable, compile_graph
from engine.cli.main import main as arenaplan
from engine.cli.options.models import light_model
from engine.graph.graph import Graph
from engine.text.errors import ModelError
from engine.text.units import parse_bytes
from tests.helpers.cli.cli_checks import BUFFERS
from tests.helpers.onnx.saved_models import save_perceptron
from tests.helpers.paths import ROOT
from tools import bench_overhead, bench_run, bench_solvers, demo, trace_alloc

Capture = pytest.CaptureFixture[str]


SCRIPTS = sorted(path.stem for path in (ROOT / "tools").glob("*.py") if '__name__ == "__main__"' in path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_have_help_and_end_wrong_options_in_a_line(script: str) -> None:
    def ended(option: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", f"tools.{script}", option]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
        return done.returncode, done.stdout, done.stderr

    code, printed, message = ended("--help")
    if "is not installed" not in message:
        assert code == 0 and printed
    code, _, message = ended("--no-such-option")
    assert code in (1, 2) and "Traceback" not in message


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_perceptron(tmp_path_factory.mktemp("models") / "perceptron.onnx")


def test_trace_alloc_is_the_trace_command(model: Path, capsys: Capture) -> None:
    assert trace_alloc.main([str(model), "--mode", "dynamic", "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert arenaplan(["trace", str(model), "--mode", "dynamic", "--format", "csv"]) == 0
    assert capsys.readouterr().out == shown
    assert shown.startswith("tick,kind,operator")


def test_the_demo_compares_and_writes_a_trace_for_perfetto(model: Path, tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "out" / "trace.json"
    assert demo.demonstrate(model, trace, runs=2) == 0
    shown = capsys.readouterr().out
    assert "equal to the bit" in shown and str(trace) in shown and "ui.perfetto.dev" in shown
    rows = [line for line in shown.splitlines() if line.startswith(("one arena", "reference counting", "no reuse"))]
    arena, reserved, naive = (parse_bytes(" ".join(row.split()[-2:])) for row in rows)
    assert arena < reserved and arena < naive
    page = trace.with_suffix(".html")
    assert str(page) in shown and page.read_text().startswith("<!doctype html>")
    phases = [event["ph"] for event in json.loads(trace.read_text())["traceEvents"]]
    assert phases.count("b") == phases.count("e") > 0


@pytest.mark.slow
def test_the_benchmark_times_both_engines_in_turn(model: Path, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("onnxruntime")
    output = tmp_path / "bench.json"
    options = ["--backend", "numpy", "--threads", "1", "--runs", "3", "--quiet"]
    assert bench_run.main(["--model", str(model), *options, "-o", str(output)]) == 0
    (row,) = json.loads(output.read_text())["rows"]
    assert row["largest_difference"] < 1e-5
    assert row["runs"] >= 3
    assert row["ratio_median"] == row["arenaplan_seconds"]["median"] / row["onnxruntime_seconds"]["median"]
    # the product before the bias is 4 x 16 floats, which onnxruntime rounds up to what it aligns
    assert 0 < row["onnxruntime_planned_bytes"] + row["onnxruntime_besides_bytes"] <= 4096
    assert "| perceptron | numpy | 1 |" in capsys.readouterr().out


@pytest.mark.slow
def test_the_benchmark_without_options_times_the_default(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    options: list[dict[str, Any]] = []

    def compiled(graph: Graph, **asked: Any) -> Executable:
        options.append(asked)
        return compile_graph(graph, **asked)

    monkeypatch.setattr(bench_run, "compile_graph", compiled)
    output = tmp_path / "bench.json"
    assert bench_run.main(["--model", str(model), "--threads", "1", "--runs", "1", "--quiet", "-o", str(output)]) == 0
    assert options == [{"threads": 1}]
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["backend"], row["optimise"]) == ("default", "default")


def test_groups_of_runs_take_turns() -> None:
    ran: list[str] = []
    one, other = bench_run.in_groups(bench_run.GROUP + 1, lambda: ran.append("a"), lambda: ran.append("b"))
    group = bench_run.GROUP + 1
    assert "".join(ran) == ("a" * group + "b" * group) * 2
    assert len(one) == len(other) == 2 * bench_run.GROUP


def test_the_cost_of_an_operator_is_measured(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_overhead, "CHAIN", 200)
    output = tmp_path / "chain.json"
    assert bench_overhead.main(["--runs", "3", "-o", str(output)]) == 0
    assert json.loads(output.read_text())["chain"] == 200
    assert "us an operator" in capsys.readouterr().out


def test_strategies_are_timed_on_files_folders_and_random_instances(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.35.csv").write_text(BUFFERS)
    (tmp_path / "b.csv").write_text("id,lower,upper,size,gaps\na,0,9,4,2-5\nb,2,5,4,\n")
    output = tmp_path / "bench.json"
    options = ["--random", "50", "--strategy", "naive", "best", "--capacity-from-name", "--timeout", "1s"]
    assert bench_solvers.main([str(tmp_path), *options, "-o", str(output)]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert [(row["instance"], row["strategy"]) for row in rows] == [
        *(("a.35.csv", "naive"), ("a.35.csv", "best"), ("b.csv", "naive"), ("b.csv", "best")),
        *(("random_50", "naive"), ("random_50", "best")),
    ]
    assert (rows[0]["arena_bytes"], rows[0]["ratio"], rows[0]["status"]) == (40, 40 / 30, "unknown")
    assert (rows[1]["arena_bytes"], rows[1]["ratio"], rows[1]["status"]) == (30, 1, "optimal")
    assert all(row["arena_bytes"] >= row["lower_bound"] and not row["note"] for row in rows)
    assert "1.3333" in capsys.readouterr().out


def test_strategies_are_timed_on_instances_of_a_kind(capsys: Capture) -> None:
    assert bench_solvers.main(["--random", "20", "--kind", "cut_rectangles", "--strategy", "best"]) == 0
    assert re.search(r"cut_rectangles_20 +20  best +1048576 +1\.0000 .* optimal", capsys.readouterr().out)


def test_a_strategy_that_cannot_take_an_instance_says_so(tmp_path: Path, capsys: Capture) -> None:
    unable = next(s.name for s in STRATEGIES.values() if not s.traits.conflicts)
    (tmp_path / "b.csv").write_text("id,lower,upper,size,gaps\na,0,9,4,2-5\nb,2,5,4,\n")
    assert bench_solvers.main([str(tmp_path / "b.csv"), "--strategy", unable]) == 0
    assert "cannot take conflicts" in capsys.readouterr().out


@pytest.mark.slow
def test_startup_is_timed_cold_and_warm(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.csv").write_text(BUFFERS)
    output = tmp_path / "bench.json"
    options = ["--strategy", "naive", "--startup", "-o", str(output)]
    assert bench_solvers.main([str(tmp_path / "a.csv"), *options]) == 0
    (row,) = json.loads(output.read_text())["startup"]
    assert row["buffers"] == 3 and row["cold_s"] > 0 and row["warm_s"] > 0 and row["processor_s"] > 0
    assert "cold_s" in capsys.readouterr().out


def test_a_light_model_comes_from_the_onnx_package() -> None:
    assert light_model("resnet50").is_file()
    with pytest.raises(ModelError, match="light_nothing"):
        light_model("nothing")


@pytest.mark.slow
def test_the_demo_plans_and_runs_resnet50(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo.main() == 0
    shown = capsys.readouterr().out
    assert "1,3,224,224" in shown and "equal to the bit" in shown
    assert json.loads((tmp_path / demo.TRACE).read_text())["traceEvents"]
