"""The rows of a sweep: their columns, and the function that carries out a task in a worker."""

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.models.own_operators import run_operator_files
from engine.sweeps.measures import MEASURES
from engine.sweeps.task import Task
from engine.text.errors import OptionError
from engine.text.faults import Door

Row = Mapping[str, Any]
"""The values of a row, by column."""
TASK, MODEL, STATUS, ERROR = "task", "model", "status", "error"
OK = "ok"
_LONGEST = 500
"""The most characters of an error in a row."""


def carry_out(task: Task) -> Row:
    """Returns the row of a task; one with an error where it fails. Ctrl-C passes."""
    begin = time.perf_counter()
    try:
        with Door(f"working on {task.title}"):
            _register(task.operators)
            values = MEASURES[task.measure].take(task)
    except Exception as error:
        return failed(task, error)
    return row_of(task, {STATUS: OK, **values, "task_seconds": time.perf_counter() - begin})


def failed(task: Task, error: BaseException) -> Row:
    """Returns the row of a task that ended with an error: its first line, as tables of tensors may stand below it."""
    line = next(iter(str(error).strip().splitlines()), "")
    text = " ".join(line.split()) or type(error).__name__
    return row_of(task, {STATUS: ERROR, ERROR: text[:_LONGEST]})


def row_of(task: Task, values: Row) -> Row:
    """Returns a row with a value or None for each column."""
    own = {TASK: task.digest, MODEL: task.title, **{name: number_in(text) for name, text in task.settings}}
    return {name: own.get(name, values.get(name)) for name in columns_of(task.measure, tuple(dict(task.settings)))}


def columns_of(measure: str, varied: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the columns, in order. Raises OptionError where one would stand there twice."""
    own = (TASK, MODEL, STATUS, *MEASURES[measure].columns, "task_seconds", ERROR)
    if taken := set(varied) & set(own):
        raise OptionError(f"{min(taken)!r} is a column of every table, and cannot be varied")
    return (*own[:2], *varied, *own[2:])


def label_of(row: Row, names: Iterable[str]) -> str:
    """Returns what a chart calls a row: its model, without its folder, and the values of some names."""
    model = row[MODEL].removeprefix("zoo:").removesuffix(".onnx").rpartition("/")[2]
    return " ".join([model, *(f"{name}={row[name]}" for name in names)])


def number_in(text: str) -> int | str:
    """Returns the integer that a text is, or the text."""
    return int(text) if text.isascii() and text.isdecimal() else text


@lru_cache(maxsize=8)
def _register(files: tuple[Path, ...]) -> None:
    run_operator_files(files)
