"""`arenaplan heaps --evict`: what a budget costs by eviction, on each heap, and by a plan that runs operators again."""

from argparse import Namespace
from typing import Any

from attrs import asdict, evolve, frozen

from allocator.errors import OutOfMemoryError, TooMuchWorkError, UnsupportedProblemError
from allocator.eviction.evict import evict
from allocator.eviction.smallest import smallest_budget
from allocator.heaps import HEAPS
from allocator.problem import NO_CAPACITY
from allocator.progress import each
from allocator.recompute.work import RecomputeProblem
from engine.api import check_evict, make_plan
from engine.cli.options.common import plan_options, print_text
from engine.cli.options.models import load_graph
from engine.cli.options.values import print_json
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.lower.costs import lowered_cost
from engine.lower.work import work_in
from engine.planning.unnested import unnested
from engine.text.errors import BudgetError, OptionError
from engine.text.tables import in_columns, joined


@frozen
class _Row:
    """One heap. `slowdown`: all work within the budget over that without; numbers are 0 where it fails: see `note`."""

    heap: str
    evictions: int = 0
    runs_again: int = 0
    slowdown: float = 0.0
    peak_reserved: int = 0
    smallest_budget: int = 0
    smallest_slowdown: float = 0.0
    note: str = ""


@frozen
class _Static:
    """The plan within the same budget; numbers are 0 where there is none: see `note`.

    `smallest_budget` is the smallest arena that was found.
    """

    arena_bytes: int = 0
    runs_again: int = 0
    slowdown: float = 0.0
    smallest_budget: int = 0
    smallest_slowdown: float = 0.0
    note: str = ""


def run_evictions(arguments: Namespace) -> int:
    """Prints a line for the plan and for each heap."""
    if arguments.timeline or arguments.capacity != NO_CAPACITY:
        raise OptionError("--evict takes the bytes of the heap from --budget; leave out --capacity and --timeline")
    graph = load_graph(arguments)
    check_evict(arguments.evict, "dynamic", arguments.budget, graph)
    plain = make_plan(graph, **plan_options(arguments))
    work = work_in(unnested(plain.graph, plain.options, plain.lowered), overwrite=False)
    static = _static(graph, plain, arguments)
    rows = [_row(work, arguments.budget, arguments.evict, heap) for heap in each("heap", tuple(HEAPS))]
    if arguments.json:
        head = {"model": graph.name, "budget_bytes": arguments.budget, "evict": arguments.evict}
        print_json(head | {"plan": _data(static), "heaps": [_data(row) for row in rows]})
    else:
        print_text(_text(graph.name, arguments, static, rows))
    return 0


def _static(graph: Graph, plain: ExecutionPlan, arguments: Namespace) -> _Static:
    def planned(budget: int) -> ExecutionPlan:
        return make_plan(graph, budget=budget, recompute=not arguments.no_recompute, **plan_options(arguments))

    def slowdown(plan: ExecutionPlan) -> float:
        return lowered_cost(plan.lowered) / max(lowered_cost(plain.lowered), 1)

    try:
        least = planned(1)
    except BudgetError as error:
        least = planned(error.least)
    row = _Static(smallest_budget=least.arena_bytes, smallest_slowdown=slowdown(least))
    try:
        plan = planned(arguments.budget)
    except BudgetError as error:
        return evolve(row, note=str(error).splitlines()[0])
    again = sum(len(r.operators) for r in plan.recomputed)
    return evolve(row, arena_bytes=plan.arena_bytes, runs_again=again, slowdown=slowdown(plan))


def _row(work: RecomputeProblem, budget: int, name: str, heap: str) -> _Row:
    try:
        smallest = smallest_budget(work, name, heap)
    except UnsupportedProblemError as error:
        return _Row(heap, note=str(error))
    row = _Row(heap, smallest_budget=smallest.budget, smallest_slowdown=smallest.eviction.slowdown)
    try:
        done = evict(work, budget, name, heap)
    except (OutOfMemoryError, TooMuchWorkError) as error:
        return evolve(row, note=str(error))
    return evolve(
        row,
        evictions=done.evictions,
        runs_again=done.reruns,
        slowdown=done.slowdown,
        peak_reserved=done.peak_reserved,
    )


def _data(row: _Row | _Static) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if key != "note" or value}


def _text(model: str, arguments: Namespace, static: _Static, rows: list[_Row]) -> str:
    table: list[tuple[str, ...]] = [
        ("heap", "evictions", "run again", "work", "peak", "smallest budget", "work there"),
        ("plan", "", *_cells(static.runs_again, static.slowdown, static.arena_bytes, static.note), *_smallest(static)),
    ]
    for row in rows:
        evictions = "" if row.note else str(row.evictions)
        table.append(
            (row.heap, evictions, *_cells(row.runs_again, row.slowdown, row.peak_reserved, row.note), *_smallest(row))
        )
    evicts = f"reference counting evicts by {arguments.evict}, the plan runs operators again"
    head = f"{model}: {arguments.budget} bytes; {evicts}"
    notes = [f"{name}: {note}" for name, note in (("plan", static.note), *((r.heap, r.note) for r in rows)) if note]
    return joined((head, *in_columns(table, set(range(1, 7))), *notes))


def _cells(again: int, slowdown: float, peak: int, note: str) -> tuple[str, str, str]:
    return ("", "does not fit", "") if note else (str(again), f"{slowdown:.1%}", f"{peak} B")


def _smallest(row: _Row | _Static) -> tuple[str, str]:
    return (f"{row.smallest_budget} B", f"{row.smallest_slowdown:.1%}") if row.smallest_budget else ("", "")
