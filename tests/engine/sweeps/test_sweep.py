"""Sweeps in this process: rows are what the planner gives, errors are rows, and nothing is done twice."""

from pathlib import Path
from typing import Any

import pytest

import engine
from engine import zoo
from engine.sweeps import plans as plan_rows
from engine.sweeps import sweep as sweeping
from engine.sweeps.rows import Row
from engine.sweeps.rows import carry_out as carry_out_really
from engine.sweeps.sweep import sweep
from engine.sweeps.task import Task
from engine.text.errors import OptionError
from tests.helpers.onnx.saved_models import save_perceptron, save_positive


def without_times(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if not name.endswith("_seconds")} for row in rows]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_perceptron(tmp_path / "perceptron.onnx", "batch"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Returns the tasks that are carried out from now on."""
    done = list[Task]()

    def carry_out(task: Task) -> Row:
        done.append(task)
        return carry_out_really(task)

    monkeypatch.setattr(sweeping, "carry_out", carry_out)
    return done


def test_rows_are_what_the_planner_gives(model: str) -> None:
    names = [model, "zoo:squeezenet?image=32"]
    table = sweep(names, vary={"batch": [1, 3], "views": [True, False]}, on="here", strategy="greedy_by_size")
    keys = [(row["model"], row["batch"], row["views"]) for row in table.rows]
    assert keys == [(name, batch, views) for name in names for batch in (1, 3) for views in ("true", "false")]
    graphs = [engine.load_onnx(model, shapes={"x": (b, 8)}) for b in (1, 3)] + [zoo.squeezenet(b, 32) for b in (1, 3)]
    plans = [engine.make_plan(g, views=v, strategy="greedy_by_size", threads=1) for g in graphs for v in (True, False)]
    assert [row["arena_bytes"] for row in table.rows] == [plan.arena_bytes for plan in plans]
    assert [row["lower_bound"] for row in table.rows] == [plan.report().lower_bound for plan in plans]
    assert {row["solver"] for row in table.rows} == {"greedy_by_size"}
    assert {row["run_seconds"] for row in table.rows} == {None}


def test_a_plan_is_timed_again_where_machine_code_was_made(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 1, 1, 1])
    monkeypatch.setattr(plan_rows, "made_count", lambda: next(counts))
    (row,) = sweep([model], vary={"batch": [2]}, on="here").rows
    assert row["status"] == "ok" and next(counts, None) is None


def test_plans_run_where_that_is_asked_for(model: str) -> None:
    (row,) = sweep([model], vary={"batch": [2]}, on="here", runs=2).rows
    assert row["status"] == "ok" and 0 < row["run_seconds"] < row["task_seconds"]


def test_budgets_and_lengths_hold_for_all_models_or_are_varied(model: str) -> None:
    table = sweep([model], vary={"budget": ["1 MiB", 64]}, lengths={"batch": 4}, on="here")
    fits, fails = table.rows
    assert (fits["budget"], fits["status"]) == ("1 MiB", "ok")
    assert fails["status"] == "error" and "bytes too much" in fails["error"] and "\n" not in fails["error"]


def test_what_cannot_be_planned_is_a_row_with_its_error(model: str, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\x08")
    staged = save_positive(tmp_path / "staged.onnx")
    names = [tmp_path / "none.onnx", model, tmp_path / "broken.onnx", "zoo:lenet", "zoo:squeezenet?bach=1", staged]
    rows = sweep([str(name) for name in names], on="here", vary={"batch": [1]}).rows
    assert [row["status"] for row in rows] == ["error", "ok", *["error"] * 4]
    words = ("no such file", "", "broken.onnx", "no network 'zoo:lenet'", "no option 'bach'", "batch")
    assert all(word in (row["error"] or "") for row, word in zip(rows, words, strict=True))


def test_a_sweep_goes_on_where_it_was_and_does_nothing_twice(model: str, tmp_path: Path, calls: list[Task]) -> None:
    output = tmp_path / "rows.csv"
    vary: dict[str, list[Any]] = {"batch": [1, 2, 3], "overwrite": [True, False]}
    whole = sweep([model, model], vary=vary, on="here", output=output)
    assert len(calls) == len(whole.rows) == 6
    lines = output.read_text().splitlines(keepends=True)
    output.write_text("".join(lines[:4]) + lines[4][:5])
    calls.clear()
    again = sweep([model], vary=vary, on="here", output=output)
    assert [dict(task.settings) for task in calls] == [
        {"batch": str(batch), "overwrite": text} for batch, text in ((2, "false"), (3, "true"), (3, "false"))
    ]
    assert without_times(again.rows) == without_times(whole.rows)
    assert len(output.read_text().splitlines()) == 7
    calls.clear()
    assert sweep([model], vary=vary, on="here", output=output).rows == again.rows and not calls


def test_a_task_is_another_one_where_its_file_or_an_option_is_another_one(
    model: str, tmp_path: Path, calls: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests(**options: Any) -> set[str]:
        return {row["task"] for row in sweep([model], lengths={"batch": 1}, on="here", **options).rows}

    first = digests()
    assert digests(strategy="best") == first
    assert not first & digests(threads=2)
    assert not first & digests(strategy="greedy_by_size")
    assert not first & digests(budget="1 MiB")
    assert not first & digests(runs=1)
    monkeypatch.setattr("engine.sweeps.task.own_version", lambda: "9.9")
    assert not first & digests()
    monkeypatch.undo()
    save_perceptron(tmp_path / "other.onnx", "n").replace(model)
    assert len(calls) == 7 and not first & digests()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vary": {"batch": "18"}}, "give a list of values"),
        ({"vary": {"batch": 8}}, "give a list of values"),
        ({"vary": {"order": ["random"]}}, "random"),
        ({"vary": {"gap": [1]}}, "'gap' is a column of every table"),
        ({"alignment": 3}, "alignment"),
        ({"output": "rows.txt"}, "whose name ends with"),
        ({"on": "moon"}, "no place to run tasks"),
        ({"runs": -1}, "runs"),
        ({"bugdet": 1}, "did you mean 'budget'"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_done(
    options: dict[str, Any], words: str, calls: list[Task]
) -> None:
    with pytest.raises(OptionError, match=words):
        sweep(["zoo:squeezenet"], **options)
    assert not calls


def test_no_model_and_a_single_name_are_refused() -> None:
    with pytest.raises(OptionError, match="nothing to sweep"):
        sweep([])
    with pytest.raises(OptionError, match=r"such as \['zoo:squeezenet'\]"):
        sweep("zoo:squeezenet")
