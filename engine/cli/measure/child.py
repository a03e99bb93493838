"""`python -m engine.cli.measure.child`: a fresh process that runs a network in one mode and measures itself.

What to do comes as JSON on stdin, what was found goes as JSON to the last line of stdout; `processes.py` is the other
end. Where tensors are counted or runs are timed, a first run by reference counting loads code, buffers of BLAS and
compiled kernels, so that they do not count. Where the whole process is, it loads, plans and runs as any other does.
"""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from attrs import asdict

from engine.api import Executable, make_plan
from engine.cli.measure.processes import BYTES, PROCESS, SECONDS, MeasureTask, read_task
from engine.cli.measure.readings import AnonymousPeak, Outputs, Run, digest, noise_bytes, time_runs, trace_arrays, watch
from engine.cli.options.common import plan_options
from engine.cli.options.models import Subject, load_subject
from engine.executor.arenas import file_bytes, new_arena
from engine.executor.binding import packs_from
from engine.executor.dynamic import DynamicExecutor
from engine.executor.file_packs import packs_of
from engine.executor.static import StaticExecutor
from engine.executor.team import team
from engine.models.own_operators import run_operator_files
from engine.planning.placed import PlacedPlan
from engine.report.resident import resident_set
from engine.system import process_memory
from engine.system.control_groups import member_of
from engine.system.instructions import limit_instructions
from engine.system.process_memory import data_limit, whole_pages
from engine.system.threads import cpus, limit_threads


def measure(task: MeasureTask) -> dict[str, Any]:
    """Returns the measurements that one process takes of itself: bytes, or seconds and faults."""
    if task.what != SECONDS:
        process_memory.refuse_huge_pages()
    subject = load_subject(task.arguments)
    with limit_threads(task.arguments.threads):
        if task.what == PROCESS:
            return _process(task, subject)
        executable = _rehearsed(task, subject)
        run = _run(task, executable, subject)
        measured = _bytes if task.what == BYTES else _seconds
        return measured(task, executable, subject, run) | {"digest": digest(run())}


def _process(task: MeasureTask, subject: Subject) -> dict[str, Any]:
    """Returns the resident set that is expected of this process once it has planned, and the peak while it runs."""
    arguments = task.arguments
    options, recompute = plan_options(arguments), not arguments.no_recompute
    plan = make_plan(subject.graph, budget=arguments.budget, recompute=recompute, **options)
    predicted = resident_set(plan, task.mode).resident_bytes
    with packs_from(packs_of(plan)):
        executor = _dynamic(plan, task) if task.mode == "dynamic" else _static(plan, task)
    run = _run(task, Executable(subject.graph, executor), subject)
    with _limited(task, executor.plan):
        run()
        process_memory.reset_peak()
        outputs, peak = run(), process_memory.peak_bytes()
    return {"predicted_bytes": predicted, "peak_bytes": peak, "digest": digest(outputs)}


def _run(task: MeasureTask, executable: Executable, subject: Subject) -> Run:
    return partial(executable.run, subject.feeds, copy=task.mode == "static")


def _bytes(task: MeasureTask, executable: Executable, subject: Subject, _: Run) -> dict[str, Any]:
    noise = noise_bytes()
    process_memory.give_back()
    anonymous = AnonymousPeak()

    def run() -> Outputs:
        with _limited(task, executable.plan):
            outputs = executable.executor.run_timed(subject.feeds, {}, task.mode == "static", anonymous)
            anonymous.look()  # at the copies of the outputs, too
        return outputs

    watched = watch(run)
    traced = asdict(trace_arrays(executable, subject.feeds))
    return asdict(watched) | traced | {"noise_bytes": noise, "anonymous_bytes": anonymous.peak}


def _seconds(task: MeasureTask, executable: Executable, _: Subject, run: Run) -> dict[str, Any]:
    process_memory.give_back()
    with _limited(task, executable.plan):
        first, *later = map(asdict, time_runs(run, task.runs))
    return {"first": first, "later": later}


def _limited(task: MeasureTask, plan: PlacedPlan) -> AbstractContextManager[None]:
    """Returns a context in which this process gets at most the bytes of the task beyond those that it holds.

    RLIMIT_DATA counts what is mapped: the arena, too, of which no byte was touched yet.
    """
    if not task.limit:
        return nullcontext()
    if task.group:
        return member_of(Path(task.group))
    untouched = plan.arena_bytes - file_bytes(plan) if task.mode == "static" else 0
    return data_limit(task.limit - whole_pages(untouched))


def _rehearsed(task: MeasureTask, subject: Subject) -> Executable:
    """Returns an executable that has loaded all that a run needs, with an arena of which no byte was touched."""
    arguments = task.arguments
    options, recompute = plan_options(arguments), not arguments.no_recompute
    plan = make_plan(subject.graph, budget=arguments.budget, recompute=recompute, **options)
    with packs_from(packs_of(plan)):
        executable = Executable(subject.graph, _dynamic(plan, task))
        executable.run(subject.feeds, copy=False)
        if task.mode == "dynamic":
            return executable
        del executable
        process_memory.give_back()  # else the arena may come to lie on pages that are resident already
        return Executable(subject.graph, _static(plan, task))


def _dynamic(plan: PlacedPlan, task: MeasureTask) -> DynamicExecutor:
    return DynamicExecutor(plan, runner=team(task.arguments.threads or cpus()))


def _static(plan: PlacedPlan, task: MeasureTask) -> StaticExecutor:
    return StaticExecutor(plan, new_arena(plan), task.arguments.threads or cpus())


if __name__ == "__main__":
    _task = read_task(json.load(sys.stdin))
    if _task.arguments.instructions:
        limit_instructions(_task.arguments.instructions)
    run_operator_files(_task.arguments.ops)
    print(json.dumps(measure(_task)))
