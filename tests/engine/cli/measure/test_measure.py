"""`compare --measure`: what is predicted, what fresh processes measure, how a difference is told."""

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.api import compile_graph, make_plan
from engine.cli.main import build_parser, main
from engine.cli.measure import processes, readings
from engine.cli.measure.processes import (
    BYTES,
    MODES,
    PROCESS,
    SECONDS,
    MeasureError,
    MeasureTask,
    in_process,
    read_task,
)
from engine.cli.measure.result import SMALL_BYTES, TOLERANCE, Prediction, explain, measure_plan, predict
from engine.cli.options.models import random_feeds
from engine.executor.dynamic import DynamicExecutor
from engine.graph.graph import Graph
from engine.onnx.load import load_onnx
from engine.system import process_memory
from engine.system.process_memory import PAGE
from ops.tensor.spec import Array
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs import random_graphs
from tests.helpers.onnx import small_models
from tests.helpers.onnx.saved_models import save_perceptron

MIB = 2**20
LINUX = Path("/proc/self/clear_refs").exists()
REAL_RUN = subprocess.run
COUNTED = readings.Watched(peak_bytes=0, sampled_bytes=0, samples=9, held_bytes=0, huge_bytes=0)
RUN = {"seconds": 0.5, "faults": {"minor": 7, "major": 1}}
"""A run as a child tells of it."""


def options(*words: str) -> Namespace:
    return build_parser().parse_args(["compare", *words])


def counted(**changes: Any) -> dict[str, Any]:
    """Returns what the child that counts bytes prints."""
    fields = {name: getattr(COUNTED, name) for name in ("peak_bytes", "sampled_bytes", "samples", "held_bytes")}
    readings = {
        "anonymous_bytes": 0,
        "huge_bytes": 0,
        "numpy_bytes": 0,
        "traced_bytes": 10,
        "noise_bytes": 0,
        "digest": "same",
    }
    return fields | readings | changes


def save_model(path: Path, nodes: list[Any], shape: tuple[int, ...], weights: Mapping[str, Any] | None = None) -> str:
    onnx.save(small_models.model(nodes, [small_models.value("x", shape)], initializers=weights), path)
    return str(path)


def save_chain(path: Path, shape: tuple[int, ...] = (4, 1024, 1024)) -> str:
    """Saves x -> Tanh -> Add x -> Relu -> y: tensors of 16 MiB, of which three live at once by reference counting."""
    nodes = [
        small_models.node("Tanh", ["x"], ["t"]),
        small_models.node("Add", ["t", "x"], ["a"]),
        small_models.node("Relu", ["a"], ["y"]),
    ]
    return save_model(path, nodes, shape)


@pytest.fixture
def perceptron(tmp_path: Path) -> str:
    return str(save_perceptron(tmp_path / "perceptron.onnx"))


sizes = st.integers(0, 2**36)


@given(sizes, sizes, sizes, st.integers(0, 2**24), st.sampled_from([0, 2 * MIB]))
def test_a_reason_is_given_exactly_where_a_prediction_is_off(
    predicted: int, peak: int, held: int, noise: int, huge: int
) -> None:
    readings = counted(peak_bytes=peak, held_bytes=held, huge_bytes=huge)
    reason = explain(Prediction(predicted, 0, 0, 0), readings, noise)
    assert bool(reason) == (abs(peak - predicted) > TOLERANCE * predicted)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peak_bytes": 104 * MIB}, ""),
        ({"peak_bytes": 106 * MIB}, "not explained"),
        ({"peak_bytes": 106 * MIB, "held_bytes": 6 * MIB}, "6.00 MiB of them behind the run"),
        ({"peak_bytes": 106 * MIB, "held_bytes": 2 * MIB}, "not explained"),
        ({"peak_bytes": 94 * MIB}, "never touched"),
        ({"peak_bytes": 106 * MIB, "huge_bytes": 100 * MIB}, "100.00 MiB lay in huge pages"),
        ({"peak_bytes": None, "sampled_bytes": 106 * MIB, "held_bytes": None, "huge_bytes": None}, "not explained"),
        ({"peak_bytes": None, "sampled_bytes": None}, ""),
    ],
)
def test_likely_reasons_of_a_prediction_that_is_off(changes: dict[str, Any], words: str) -> None:
    reason = explain(Prediction(100 * MIB, 0, 0, 0), counted(**changes), MIB)
    assert words in reason and bool(words) == bool(reason)


def test_below_the_noise_floor_a_difference_means_nothing() -> None:
    reason = explain(Prediction(8192, 4096, 0, 0), counted(peak_bytes=50_000), SMALL_BYTES)
    assert "noise floor" in reason and "less than 2.50 MiB" in reason


@settings(max_examples=12)
@given(random_graphs.graphs())
def test_reference_counting_is_predicted_as_the_executor_counts_it(graph: Graph) -> None:
    dynamic = compile_graph(graph, mode="dynamic")
    dynamic.run(random_feeds(graph, 0, {}))
    assert isinstance(dynamic.executor, DynamicExecutor)
    assert predict(dynamic.plan, "dynamic").numpy_bytes == dynamic.executor.peak_bytes
    static, outputs = predict(dynamic.plan, "static"), sum(var.spec.nbytes for var in graph.outputs.values())
    assert static.held_bytes % PAGE == 0 and 0 <= static.held_bytes - dynamic.arena_bytes < PAGE
    assert static.held_bytes + outputs <= static.peak_bytes < static.held_bytes + outputs + PAGE * len(graph.outputs)


@pytest.mark.parametrize("mode", MODES)
def test_a_census_of_arrays_finds_none_in_a_static_run_and_the_predicted_ones_in_a_dynamic_run(
    mode: str, tmp_path: Path
) -> None:
    graph = load_onnx(save_chain(tmp_path / "chain.onnx", (64, 64)))
    exe = compile_graph(graph, mode=mode)
    traced = readings.trace_arrays(exe, random_feeds(graph, 0, {}))
    expected = predict(exe.plan, mode).numpy_bytes
    assert expected <= traced.numpy_bytes <= expected + 4096 * bool(expected)  # each buffer has some bytes to align
    assert traced.traced_bytes >= traced.numpy_bytes


def test_a_measuring_task_survives_its_way_to_another_process() -> None:
    words = (
        "m.onnx",
        "--shape",
        "x=2,3",
        "--constant",
        "k=k.npy",
        "--timeout",
        "2s",
        "--budget",
        "1MiB",
        "--no-prepack",
    )
    task = MeasureTask(SECONDS, "dynamic", 7, options(*words))
    again = read_task(json.loads(task.to_json()))
    assert (again.what, again.mode, again.runs) == (SECONDS, "dynamic", 7)
    assert again.arguments.file == Path("m.onnx") and again.arguments.constant == [("k", Path("k.npy"))]
    assert {key: getattr(task.arguments, key) for key in vars(again.arguments)} == vars(again.arguments)
    assert again.to_json() == task.to_json()


def test_processes_take_turns_and_medians_are_of_all_of_them(perceptron: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, seconds = [], iter([4.0, 1.0, 2.0, 3.0])

    def play(task: MeasureTask) -> dict[str, Any]:
        asked.append((task.what, task.mode))
        if task.what == BYTES:
            return counted(peak_bytes=5 * MIB, noise_bytes=MIB)
        if task.what == PROCESS:
            return {"predicted_bytes": 80 * MIB, "peak_bytes": 84 * MIB, "digest": "same"}
        return {"first": RUN, "later": [RUN | {"seconds": next(seconds)}], "digest": "same"}

    monkeypatch.setattr(processes, "in_process", play)
    plan = make_plan(load_onnx(perceptron))
    measured = measure_plan(plan, options(perceptron), 1, 2)
    assert asked == [(what, mode) for what in (BYTES, PROCESS, SECONDS, SECONDS) for mode in MODES]
    assert (measured.static.seconds, measured.dynamic.seconds, measured.dynamic.seconds_min) == (3.0, 2.0, 1.0)
    assert (measured.static.minor_faults, measured.static.major_faults) == (7, 1)
    assert measured.noise_bytes == MIB and measured.outputs_equal
    assert (measured.static.predicted_process_bytes, measured.dynamic.process_bytes) == (80 * MIB, 84 * MIB)
    assert measured.static.process_difference == pytest.approx(0.05)
    assert "static: off by" in measured.text() and "7 / 1" in measured.text() and "-:" not in measured.text()


def test_unknown_measurements_are_null_and_said_so(perceptron: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = counted(**dict.fromkeys(("peak_bytes", "sampled_bytes", "held_bytes", "huge_bytes", "noise_bytes")))
    run = {"seconds": 0.5, "faults": None}
    monkeypatch.setattr(
        processes, "in_process", lambda _: blind | {"first": run, "later": [run], "predicted_bytes": None}
    )
    measured = measure_plan(make_plan(load_onnx(perceptron)), options(perceptron), 1, 1)
    printed = json.loads(json.dumps(measured.to_json(), allow_nan=False))
    assert (
        printed["static"]["peak_bytes"] is printed["static"]["difference"] is printed["dynamic"]["minor_faults"] is None
    )
    assert printed["static"]["reason"] == "" and printed["noise_bytes"] == SMALL_BYTES
    assert "-: neither this system nor memory-profiler" in measured.text()


def test_without_proc_and_without_memory_profiler_a_run_is_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "memory_profiler", None)
    monkeypatch.setattr(process_memory, "_PROC", tmp_path / "proc")
    ran: list[int] = []

    def run() -> dict[str, Array]:
        ran.append(1)
        return {}

    watched = readings.watch(run)
    assert ran == [1] and watched == readings.Watched(None, None, 0, None, None)
    assert readings.noise_bytes() is None


@pytest.mark.skipif(not LINUX, reason="needs Linux's /proc")
def test_without_memory_profiler_the_systems_peak_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memory_profiler", None)
    process_memory.give_back()
    watched = readings.watch(lambda: {"y": np.ones(64 * MIB, np.uint8)})
    assert watched.sampled_bytes is None and watched.samples == 0
    assert watched.peak_bytes is not None and 60 * MIB < watched.peak_bytes < 80 * MIB
    assert watched.held_bytes is not None and watched.held_bytes < 16 * MIB


def test_equal_outputs_have_equal_digests_and_only_they() -> None:
    zero = np.zeros(2, np.float32)
    others = ({"z": zero}, {"y": -zero}, {"y": zero.view(np.int32)}, {"y": zero[None]})
    assert readings.digest({"y": zero}) == readings.digest({"y": zero.copy()})
    assert len({readings.digest(outputs) for outputs in ({"y": zero}, *others)}) == 1 + len(others)


def test_compare_measure_ends_with_5_where_outputs_differ(
    perceptron: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def play(task: MeasureTask) -> dict[str, Any]:
        return counted(first=RUN, later=[RUN], digest=task.mode, predicted_bytes=None)

    monkeypatch.setattr(processes, "in_process", play)
    assert main(["compare", perceptron, "--measure", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["outputs_equal"] is False


@pytest.mark.parametrize(("script", "words"), [("raise OSError('no such thing')", "OSError: no such thing"), ("", "")])
def test_a_measuring_process_that_fails_says_why(script: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(_: Any, **keywords: Any) -> Any:
        code = script or "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        return REAL_RUN([sys.executable, "-c", code], **keywords)

    monkeypatch.setattr(subprocess, "run", play)
    with pytest.raises(MeasureError, match=words or "signal 9"):
        in_process(MeasureTask(BYTES, "static", 1, options("m.onnx")))


@pytest.mark.parametrize("other", [("--parallel",), ("--oracle", "onnxruntime")])
def test_compare_measure_refuses_a_second_comparison(other: tuple[str, ...], perceptron: str, capsys: Capture) -> None:
    assert f"leave out {other[0]}" in error(["compare", perceptron, "--measure", *other], 2, capsys)


def test_a_budget_is_kept_before_any_process_is_started(
    perceptron: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(processes, "in_process", pytest.fail)
    assert main(["compare", perceptron, "--measure", "--budget", "8"]) == 3
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_compare_measures_in_fresh_processes(tmp_path: Path, capsys: Capture) -> None:
    """Where the predictions are of tens of MiB, the static one holds. Nothing here depends on time."""
    path = save_chain(tmp_path / "chain.onnx")
    printed = data(["compare", path, "--measure", "--pairs", "1", "--runs", "2"], capsys)
    static, dynamic = printed["static"], printed["dynamic"]
    assert printed["outputs_equal"] is True and printed["runs"] == 2 and printed["pairs"] == 1
    assert static["numpy_bytes"] == 0 and static["traced_bytes"] < MIB
    assert 0 <= dynamic["numpy_bytes"] - dynamic["predicted_numpy_bytes"] < 4096
    assert static["seconds"] > 0 and dynamic["first_seconds"] > 0
    if not LINUX or printed["page_bytes"] > 65536:
        return
    assert abs(static["difference"]) < TOLERANCE and static["reason"] == ""
    assert abs(static["process_difference"]) < TOLERANCE and static["process_bytes"] > 48 * MIB
    assert -TOLERANCE < dynamic["process_difference"] < 0.25
    assert static["held_bytes"] > 0.95 * 32 * MIB and static["minor_faults"] is not None
    assert dynamic["peak_bytes"] > 0.95 * dynamic["predicted_bytes"]
    assert static["samples"] > 0
    assert abs(static["anonymous_difference"]) < TOLERANCE


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="needs Linux's /proc")
def test_anonymous_bytes_are_those_of_the_memories_in_ram(tmp_path: Path, capsys: Capture) -> None:
    path = save_chain(tmp_path / "chain.onnx")
    memories = ["--memory", "ram=1MiB,10GB/s", "--memory", f"disk=1GiB,1GB/s,folder={tmp_path}"]
    printed = data(["compare", path, "--measure", "--pairs", "1", "--runs", "1", *memories], capsys)
    static, plain = printed["static"], make_plan(load_onnx(path))
    assert printed["outputs_equal"] is True and static["predicted_bytes"] > plain.arena_bytes
    assert static["predicted_anonymous_bytes"] < 0.75 * static["predicted_bytes"]
    assert abs(static["anonymous_difference"]) < TOLERANCE


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="needs Linux's /proc")
def test_the_static_prediction_holds_for_large_products(tmp_path: Path) -> None:
    """Three products of [4096, 1024 or 4096] matrices: activations of 64 MiB, BLAS with all its threads."""
    rng = np.random.default_rng(0)
    names = ("x", "a", "b", "y")
    shapes = {"w0": (1024, 4096), "w1": (4096, 4096), "w2": (4096, 4096)}
    weights = {name: rng.standard_normal(shape, np.float32) / 64 for name, shape in shapes.items()}
    nodes = [small_models.node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(3)]
    path = save_model(tmp_path / "products.onnx", nodes, (4096, 1024), weights)
    predicted = predict(make_plan(load_onnx(path)), "static")
    assert predicted.held_bytes >= 128 * MIB
    readings = in_process(MeasureTask(BYTES, "static", 1, options(path)))
    assert abs(readings["peak_bytes"] - predicted.peak_bytes) < TOLERANCE * predicted.peak_bytes
    assert abs(readings["held_bytes"] - predicted.held_bytes) < TOLERANCE * predicted.held_bytes
    assert readings["numpy_bytes"] == 0


@pytest.mark.parametrize("has_group", [False, True])
def test_a_mode_that_does_not_run_within_a_limit_says_so(
    has_group: bool, perceptron: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, str, str]]()

    def play(task: MeasureTask) -> dict[str, Any]:
        asked.append((task.what, task.mode, task.group))
        assert task.limit == MIB
        if task.mode == "dynamic":
            return {"failed": "was ended by signal 9"}
        return counted() | {"predicted_bytes": MIB, "first": RUN, "later": [RUN]}

    group = Path("/groups/one")
    monkeypatch.setattr(processes, "memory_group", lambda _: nullcontext(group if has_group else None))
    monkeypatch.setattr(processes, "in_process", play)
    measured = measure_plan(make_plan(load_onnx(perceptron)), options(perceptron, "--limit", "1MiB"), 1, 2)
    assert [what for what, mode, _ in asked if mode == "dynamic"] == [BYTES]  # the others are not tried
    assert {place for _, _, place in asked} == {str(group) if has_group else ""}
    assert measured.limited_by == (processes.GROUP if has_group else processes.RLIMIT)
    assert measured.dynamic.failed and measured.dynamic.seconds is None and measured.outputs_equal
    assert "dynamic: does not run within the limit: the process was ended by signal 9" in measured.text()
    assert ("no control group can be made here" in measured.text()) != has_group
    json.dumps(measured.to_json(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA as Linux has it")
def test_a_process_beyond_rlimit_data_comes_to_its_end_and_says_so(tmp_path: Path) -> None:
    arguments = options(save_chain(tmp_path / "chain.onnx"))
    assert "failed" in in_process(MeasureTask(BYTES, "dynamic", 1, arguments, 2 * MIB))
    assert "failed" not in in_process(MeasureTask(BYTES, "static", 1, arguments, 128 * MIB))
