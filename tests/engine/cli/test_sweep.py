"""`arenaplan sweep` with real workers: rows in files, killed workers, killed sweeps, a cluster, and what is refused."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import engine
from engine import zoo
from engine.cli.main import main
from engine.workers.processes import TRIES
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.own_operators import SCALE_FILE, save, scale_model
from tests.helpers.onnx.saved_models import save_perceptron
from tests.helpers.workers.children import kill_some
from tests.helpers.workers.ends import PATIENCE, comes, environment, free_port

VARY = ["--vary", "batch=1,2,4", "--vary", "strategy=best,greedy_by_size", "--vary", "views=true,false"]
SMALL = ["zoo:squeezenet?image=64", "zoo:mobilenet_v2?image=32", "zoo:nothing"]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_perceptron(tmp_path / "perceptron.onnx", "batch"))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a .jsonl file in a fixed order, without times."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    plain = [{name: value for name, value in row.items() if not name.endswith("_seconds")} for row in rows]
    return sorted(plain, key=lambda row: str(row["task"]))


def started(arguments: list[str]) -> "subprocess.Popen[bytes]":
    """Starts the command in a process of its own."""
    code = "import sys; from engine.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_two_workers_give_the_rows_of_none(model: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["sweep", model, "zoo:nothing", "--vary", "batch=1,3", "--vary", "overwrite=true,false"]
    assert main([*words, "-o", str(tmp_path / "two.jsonl"), "--on", "processes", "--workers", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "4 rows of 8 with an error" in shown.out
    assert main([*words, "-o", str(tmp_path / "none.jsonl"), "--on", "here"]) == 0
    assert rows_of(tmp_path / "two.jsonl") == rows_of(tmp_path / "none.jsonl")


def test_rows_table_chart_and_json_are_written(model: str, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    table, chart = tmp_path / "t.tex", tmp_path / "c.svg"
    words = [model, "--vary", "batch=1:4", "--run", "--runs", "2", "--on", "here"]
    printed = data(["sweep", *words, "--table", str(table), "--chart", str(chart)], capsys)
    assert [row["batch"] for row in printed["rows"]] == [1, 2, 4]
    assert all(row["run_seconds"] > 0 for row in printed["rows"])
    assert set(printed["pareto"]) == {row["task"] for row in printed["rows"]}
    assert [effect["value"] for effect in printed["effects"]] == [1, 2, 4]
    assert list(printed["rows"][0]) == printed["columns"]
    assert table.read_text().count(r"\\") == 4 and b"<svg" in chart.read_bytes()


def test_neither_a_model_nor_a_preset_is_refused(capsys: Capture) -> None:
    assert "name a model, such as zoo:resnet50, or a preset: placements, tricks" in error(["sweep"], 2, capsys)


def test_without_a_file_the_rows_are_printed(model: str, capsys: Capture) -> None:
    assert main(["sweep", model, "--vary", "batch=1,2", "--vary", "reuse=true,false", "--on", "here"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["model", "batch", "reuse"]
    values = [line.lstrip("* ").split()[1:3] for line in rows[:4]]
    assert values == [["1", "true"], ["1", "false"], ["2", "true"], ["2", "false"]]
    assert rows[4] == "what an option changes, all else being equal:"


def test_operators_of_the_user_are_registered_in_the_workers(tmp_path: Path, capsys: Capture) -> None:
    model, operators = save(scale_model(), tmp_path), tmp_path / "ops.py"
    operators.write_text(SCALE_FILE)
    printed = data(["sweep", str(model), "--ops", str(operators), "--workers", "1"], capsys)
    assert [(row["status"], row["error"]) for row in printed["rows"]] == [("ok", None)]


@pytest.mark.slow
def test_a_preset_plans_files_and_networks_at_each_batch(model: str, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    table, chart, rows = tmp_path / "t.tex", tmp_path / "c.pdf", tmp_path / "rows.csv"
    models = [model, "zoo:squeezenet?image=32", "zoo:nothing"]
    words = ["sweep", "--preset", "placements", *models, "--vary", "batch=1,3", "--on", "here", "-o", str(rows)]
    printed = data([*words, "--table", str(table), "--chart", str(chart)], capsys)
    assert [(row["model"], row["batch"]) for row in printed["rows"]] == [(name, n) for name in models for n in (1, 3)]
    assert [row["status"] for row in printed["rows"]] == ["ok"] * 4 + ["error"] * 2
    assert list(printed["rows"][0]) == printed["columns"]
    assert printed["rows"][3]["arena_bytes"] == engine.make_plan(zoo.squeezenet(3, 32), optimise=0).arena_bytes
    assert data(words, capsys)["rows"] == printed["rows"]  # those of the file
    assert table.read_text().count(r"\\") == 5 and chart.read_bytes().startswith(b"%PDF")


def test_a_sweep_whose_rows_all_have_errors_fails_and_shows_them(capsys: Capture) -> None:
    assert main(["sweep", "zoo:nothing", "./none.onnx", "--on", "here"]) == 1
    shown = capsys.readouterr()
    assert "2 rows of 2 with an error" in shown.out
    assert shown.err.startswith("arenaplan: error: 2 rows, each with an error, the first: there is no network")
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--vary", "batch=1", "--vary", "batch=2"], 2, "--vary has 'batch' twice"),
        (["--vary", "order=random"], 2, "invalid choice: 'random'"),
        (["-o", "rows.xls"], 2, "rows go to a file whose name ends with .csv, .jsonl, .parquet"),
        (["--chart", "c.gif"], 2, "does not end with .png, .svg, .pdf"),
        (["--table", "t.xls"], 2, "does not end with .csv, .tex"),
        (["--on", "moon"], 2, "'moon' is no place to run tasks"),
        (["--on", "dask://1:2", "--workers", "3"], 2, "leave out the number 3"),
        (["--workers", "0"], 2, "no integer from 1 on"),
        (["--alignment", "3"], 2, "alignment"),
        (["--preset", "place"], 2, "did you mean placements?"),
        (["--preset", "placements", "--run"], 2, "leave out 'runs'"),
        (["-o", "none/rows.csv"], 1, "there is no such folder"),
        (["--chart", "none/c.png"], 1, "there is no such folder"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(words: list[str], code: int, message: str, capsys: Capture) -> None:
    assert message in error(["sweep", "zoo:squeezenet", *words], code, capsys)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told_in_one_line(model: str, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("distributed")
    rows = tmp_path / "rows.csv"
    words = ["sweep", model, "--dim", "batch=1", "--on", f"dask://127.0.0.1:{free_port()}", "-o", str(rows)]
    assert "no Dask scheduler answers" in error(words, 1, capsys)
    assert not rows.exists()


@pytest.mark.slow
def test_workers_that_are_killed_at_random_lose_no_row_and_change_none(tmp_path: Path) -> None:
    words = ["sweep", *SMALL, *VARY]
    assert main([*words, "--on", "here", "-o", str(tmp_path / "here.jsonl")]) == 0
    process = started([*words, "--workers", "2", "-o", str(tmp_path / "killed.jsonl")])
    killed = kill_some(process.pid, TRIES - 1, 2.0, seed=1)  # so that no task can lose all its tries
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, b"") and killed
    assert rows_of(tmp_path / "killed.jsonl") == rows_of(tmp_path / "here.jsonl")


@pytest.mark.slow
def test_a_sweep_that_is_killed_again_and_again_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    words, rows, draw = ["sweep", *SMALL, *VARY], tmp_path / "rows.jsonl", random.Random(2)
    assert main([*words, "--on", "here", "-o", str(tmp_path / "here.jsonl")]) == 0
    counts = [0]
    while True:
        process = started([*words, "--workers", "2", "-o", str(rows)])
        wanted = counts[-1] + draw.randint(2, 9)
        assert comes(lambda p=process, n=wanted: p.poll() is not None or lines_of(rows) >= n)  # type: ignore[misc]
        if process.poll() is not None:
            break
        process.send_signal(draw.choice((signal.SIGKILL, signal.SIGTERM)))
        process.communicate(timeout=PATIENCE)
        counts.append(lines_of(rows))
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and len(counts) > 2 and counts == sorted(counts)
    assert rows_of(rows) == rows_of(tmp_path / "here.jsonl")


@pytest.mark.slow
def test_ctrl_c_keeps_the_rows_that_are_there(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    process = started(["sweep", *SMALL, *VARY, "--workers", "2", "-o", str(rows)])
    assert comes(lambda: lines_of(rows) >= 3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and errors == b"arenaplan: error: interrupted\n"
    assert len(rows_of(rows)) >= 3


@pytest.mark.slow
def test_a_cluster_whose_workers_are_killed_gives_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.helpers.workers.cluster import cluster, without_log  # noqa: PLC0415 (needs the package)

    words = ["sweep", *SMALL, *VARY]
    assert main([*words, "--on", "here", "-o", str(tmp_path / "here.jsonl")]) == 0
    with cluster(tmp_path, 3) as dask:
        process = started([*words, "--on", dask.on, "-o", str(tmp_path / "dask.jsonl")])
        assert comes(lambda: lines_of(tmp_path / "dask.jsonl") >= 3)
        os.kill(dask.workers[0].pid, signal.SIGKILL)
        time.sleep(0.5)
        dask.add_worker()
        os.kill(dask.workers[1].pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, without_log(errors)) == (0, b"")
    assert rows_of(tmp_path / "dask.jsonl") == rows_of(tmp_path / "here.jsonl")


def lines_of(path: Path) -> int:
    """Returns how many whole lines a file has; 0 where there is none."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
