"""The rows of a sweep: their columns, and the function that carries out a task in a worker."""

import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.api import compile_graph, make_plan
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.models.named import NamedModel
from engine.models.own_operators import run_operator_files
from engine.saved import embed
from engine.sweeps.task import Task
from engine.system.arrays import random_arrays
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
            values = _plan(_graph(task.model), task)
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
    return {name: own.get(name, values.get(name)) for name in columns_of(tuple(dict(task.settings)))}


def columns_of(varied: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the columns, in order. Raises OptionError where one would stand there twice."""
    own = (TASK, MODEL, STATUS, *_PLAN, "task_seconds", ERROR)
    if taken := set(varied) & set(own):
        raise OptionError(f"{min(taken)!r} is a column of every table, and cannot be varied")
    return (*own[:2], *varied, *own[2:])


def number_in(text: str) -> int | str:
    """Returns the integer that a text is, or the text."""
    return int(text) if text.isascii() and text.isdecimal() else text


@lru_cache(maxsize=1)
def _graph(named: NamedModel) -> Graph:
    """Loads a model; the last one is kept, as the tasks of one model mostly follow each other."""
    return named.load()


@lru_cache(maxsize=8)
def _register(files: tuple[Path, ...]) -> None:
    run_operator_files(files)


def _plan(graph: Graph, task: Task) -> Row:
    begin = time.perf_counter()
    plan = make_plan(graph, budget=task.budget, recompute=task.recompute, threads=task.threads, **task.options)
    seconds = time.perf_counter() - begin
    report = plan.report().to_json()
    values = {name: report[name] for name in _PLAN if name in report}
    values["solver"] = report["strategy"]
    return values | {"proof": report["status"], "plan_seconds": seconds, "run_seconds": _run_seconds(graph, plan, task)}


def _run_seconds(graph: Graph, plan: ExecutionPlan, task: Task) -> float | None:
    """Returns the least time of some runs, after a first one."""
    if not task.runs:
        return None
    executable = compile_graph(
        graph,
        budget=task.budget,
        recompute=task.recompute,
        threads=task.threads,
        embedded=embed(plan),
        **task.options,
    )
    feeds = random_arrays({name: var.spec for name, var in graph.inputs.items()}, task.named.seed)
    executable.run(feeds, copy=False)
    times = []
    for _ in range(task.runs):
        begin = time.perf_counter()
        executable.run(feeds, copy=False)
        times.append(time.perf_counter() - begin)
    return min(times)


_PLAN = (
    "operators",
    "flops",
    "arena_bytes",
    "lower_bound",
    "gap",
    "proof",
    "solver",
    "naive_bytes",
    "dynamic_peak_bytes",
    "weights_bytes",
    "resident_weights_bytes",
    "workspace_bytes",
    "plan_seconds",
    "run_seconds",
)
