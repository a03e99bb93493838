"""`arenaplan run` with a pattern for an input: a run for each file, in the order of names, by workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.cli.main import main
from engine.workers.processes import TRIES
from ops.tensor.spec import Array
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.saved_models import save_perceptron
from tests.helpers.workers.children import kill_some
from tests.helpers.workers.ends import PATIENCE, comes, environment

COUNT = 12


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Returns a model beside a folder `data` with an array for each run."""
    (tmp_path / "data").mkdir()
    for number in range(COUNT):
        np.save(tmp_path / "data" / f"r{number:02}.npy", rows(number))
    return str(save_perceptron(tmp_path / "m.onnx", "batch"))


def rows(number: int) -> Array:
    return np.random.default_rng(number).normal(size=(4, 8)).astype(np.float32)


def wanted(model: str) -> list[Array]:
    exe = engine.compile(engine.load_onnx(model, shapes={"x": (4, 8)}), threads=1)
    return [exe.run({"x": rows(number)})["y"] for number in range(COUNT)]


def written(folder: Path) -> list[Array]:
    assert sorted(path.name for path in folder.iterdir()) == [f"r{number:02}" for number in range(COUNT)]
    return [np.load(folder / f"r{number:02}" / "y.npy") for number in range(COUNT)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [["--on", "here"], ["--workers", "2"]])
def test_each_file_is_a_run_with_the_outputs_of_one_process(workers: list[str], model: str, tmp_path: Path) -> None:
    words = ["run", model, "--input", f"x={tmp_path}/data/*.npy", "-o", str(tmp_path / "outputs"), *workers]
    assert main(words) == 0
    assert all(map(np.array_equal, written(tmp_path / "outputs"), wanted(model)))


def test_outputs_are_shown_in_the_order_of_names(model: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["run", model, "--input", f"x={tmp_path}/data/r0*.npy", "--on", "here"]
    shown = data(words, capsys)
    assert [run["run"] for run in shown["runs"]] == [f"r0{number}" for number in range(10)]
    assert [run["outputs"][0]["max"] for run in shown["runs"]] == [float(y.max()) for y in wanted(model)[:10]]
    assert shown["seconds"] > 0
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", *(f"r0{number}" for number in range(10))]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", "x={}/none*.npy"], "no file fits the pattern"),
        (["--input", "x={}/*.npy", "--mode", "poison"], "leave out --mode"),
        (["--input", "x={}/*.npy", "--runs", "3"], "leave out --runs"),
        (["--input", "x={}/*.npy", "-o", "out.npz"], "go to a folder"),
        (["--input", "x={}/r00.npy", "--workers", "2"], "share out the runs of a pattern"),
        (["--input", "x={}/*.npy", "--on", "moon"], "no place to run tasks"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], message: str, model: str, tmp_path: Path, capsys: Capture
) -> None:
    asked = [word.format(tmp_path / "data") for word in words]
    assert message in error(["run", model, *asked], 2, capsys)


def test_an_input_that_there_is_not_is_told(model: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["run", model, "--input", f"z={tmp_path}/data/*.npy", "--dim", "batch=4", "--on", "here"]
    assert "'z'" in error(words, 1, capsys)


def test_two_patterns_have_as_many_files(model: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "data"
    words = ["--input", f"x={folder}/*.npy", "--input", f"y={folder}/r0*.npy"]
    assert "--input x has 12 files, and --input y has 10" in error(["run", model, *words], 2, capsys)


def test_many_runs_evict_nothing(model: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["run", model, "--input", f"x={tmp_path}/data/*.npy", "--evict", "lru", "--budget", "1MiB"]
    assert "leave out --mode, --evict and --parallel" in error(words, 2, capsys)


def test_a_file_that_does_not_fit_is_told_with_its_name(model: str, tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "data" / "r05.npy", np.zeros((4, 9), np.float32))
    words = ["run", model, "--input", f"x={tmp_path}/data/*.npy", "--on", "here"]
    assert "run 'r05': " in error(words, 1, capsys)


def _started(words: list[str]) -> "subprocess.Popen[bytes]":
    code = "import sys; from engine.cli.main import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, *words], env=environment(), stderr=subprocess.PIPE)


@pytest.mark.slow
def test_workers_that_are_killed_at_random_lose_no_run(model: str, tmp_path: Path) -> None:
    out = tmp_path / "outputs"
    process = _started(["run", model, "--input", f"x={tmp_path}/data/*.npy", "--workers", "2", "-o", str(out)])
    assert kill_some(process.pid, TRIES - 1, 0.7, seed=3)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, b"")
    assert all(map(np.array_equal, written(out), wanted(model)))


@pytest.mark.slow
def test_a_cluster_with_a_killed_worker_loses_no_run(model: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.helpers.workers.cluster import cluster, without_log  # noqa: PLC0415 (needs the package)

    out = tmp_path / "outputs"
    with cluster(tmp_path, 2) as dask:
        process = _started(["run", model, "--input", f"x={tmp_path}/data/*.npy", "--on", dask.on, "-o", str(out)])
        assert comes(lambda: out.exists() and len(list(out.iterdir())) > 1)
        os.kill(dask.workers[0].pid, signal.SIGKILL)
        time.sleep(0.1)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, without_log(errors)) == (0, b"")
    assert all(map(np.array_equal, written(out), wanted(model)))
