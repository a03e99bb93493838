"""The scripts in tools/: thin, so these tests only see that they lead where they should."""

import json
from pathlib import Path

import pytest

from engine.cli.main import main as arenaplan
from engine.cli.models import light_model
from engine.errors import ModelError
from tests.models import save_perceptron
from tools import bench_run, demo, trace_alloc

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_perceptron(tmp_path_factory.mktemp("models") / "perceptron.onnx")


def test_trace_alloc_is_the_trace_command(model: Path, capsys: Capture) -> None:
    assert trace_alloc.main([str(model), "--mode", "dynamic", "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert arenaplan(["trace", str(model), "--mode", "dynamic", "--format", "csv"]) == 0
    assert capsys.readouterr().out == shown
    assert shown.startswith("tick,operator,kind")


def test_the_demo_compares_and_writes_a_trace_for_perfetto(model: Path, tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "out" / "trace.json"
    assert demo.demonstrate(model, trace, runs=2) == 0
    shown = capsys.readouterr().out
    assert "equal to the bit" in shown and str(trace) in shown and "ui.perfetto.dev" in shown
    phases = [event["ph"] for event in json.loads(trace.read_text())["traceEvents"]]
    assert phases.count("b") == phases.count("e") > 0


def test_the_benchmark_times_both_engines_and_the_cost_of_an_operator(
    model: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(bench_run, "CHAIN", 200)
    output = tmp_path / "bench.json"
    assert bench_run.main(["--model", str(model), "--runs", "3", "-o", str(output)]) == 0
    told = json.loads(output.read_text())
    assert told["largest_difference"] < 1e-5
    assert told["ratio_median"] == told["arenaplan_seconds"]["median"] / told["onnxruntime_seconds"]["median"]
    assert told["chain"] == 200
    assert "us an operator" in capsys.readouterr().out


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
