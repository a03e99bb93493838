"""What a row of a sweep tells of a plan: its sizes and times, of a run too where that is asked for."""

import time
from functools import lru_cache
from typing import Any

from allocator.machine_code.door import made_count
from engine.api import compile_graph, make_plan
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.models.named import NamedModel
from engine.saved import embed
from engine.sweeps.task import Task
from engine.system.arrays import random_arrays

COLUMNS = (
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


def plan_row(task: Task) -> dict[str, Any]:
    """Plans the model of a task as its options say, and runs it where it says so."""
    graph = _graph(task.model)
    plan, seconds = _planned(graph, task)
    report = plan.report().to_json()
    values = {name: report[name] for name in COLUMNS if name in report}
    values["solver"] = report["strategy"]
    return values | {"proof": report["status"], "plan_seconds": seconds, "run_seconds": _run_seconds(graph, plan, task)}


def _planned(graph: Graph, task: Task) -> tuple[ExecutionPlan, float]:
    """Returns a plan and its time in seconds. It plans again where machine code was made, whose time is no plan's."""
    while True:
        before, begin = made_count(), time.perf_counter()
        plan = make_plan(graph, budget=task.budget, recompute=task.recompute, threads=task.threads, **task.options)
        if made_count() == before:
            return plan, time.perf_counter() - begin


@lru_cache(maxsize=1)
def _graph(named: NamedModel) -> Graph:
    """Loads a model; the last one is kept, as the tasks of one model mostly follow each other."""
    return named.load()


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
