"""Every strategy on one problem, side by side."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from allocator.errors import UnsupportedProblemError
from allocator.problem import Plan, Problem
from allocator.progress import each
from allocator.solvers import STRATEGIES, solve
from engine.text.tables import in_columns, joined


@frozen(eq=False)
class Entry:
    """A plan, and the seconds of the solver, the judge and the bound together."""

    plan: Plan
    seconds: float


@frozen(eq=False)
class Skipped:
    """A strategy that was not run, and why."""

    strategy: str
    reason: str


@frozen(eq=False)
class StrategyComparison:
    """The plans of all strategies for one problem. Each plan has the best lower bound that any of them proved."""

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]

    @property
    def best(self) -> Entry:
        """Returns the entry with the smallest arena; of several, the first."""
        return min(self.entries, key=lambda entry: entry.plan.arena_bytes)


def timed_solve(problem: Problem, strategy: str, seed: int, limits: Mapping[str, Any]) -> Entry:
    """Solves by one strategy; `limits` are keyword arguments of `solve`."""
    begin = time.perf_counter()
    plan = solve(problem, strategy, seed, **limits)
    return Entry(plan, time.perf_counter() - begin)


def compare_strategies(problem: Problem, seed: int, limits: Mapping[str, Any]) -> StrategyComparison:
    """Runs all strategies, but for those that cannot take the problem or would be too slow."""
    entries, skipped = [], []
    for solver in each("strategy", tuple(STRATEGIES.values()), lambda solver: solver.name):
        most = solver.traits.most_chunks
        if len(problem) > most:
            skipped.append(Skipped(solver.name, f"too slow for more than {most} buffers; runs if it is named"))
            continue
        try:
            entries.append(timed_solve(problem, solver.name, seed, limits))
        except UnsupportedProblemError as error:
            skipped.append(Skipped(solver.name, str(error).partition(";")[0]))
    bound = max((entry.plan.bound for entry in entries), key=lambda bound: bound.nbytes)
    return StrategyComparison(
        tuple(evolve(entry, plan=evolve(entry.plan, bound=bound)) for entry in entries), tuple(skipped)
    )


def ratio(plan: Plan) -> float:
    """Returns arena over lower bound; 1 where there is nothing to place."""
    return plan.arena_bytes / plan.lower_bound if plan.lower_bound else 1.0


def table(comparison: StrategyComparison) -> str:
    """Returns a line for each strategy."""
    return joined(in_columns(list(_rows(comparison)), right={1, 2, 3}))


def to_json(comparison: StrategyComparison) -> Sequence[Mapping[str, Any]]:
    """Returns one object for each strategy: its plan in numbers, or the reason why there is none."""
    rows = [_numbers(entry) for entry in comparison.entries]
    return [*rows, *({"strategy": p.strategy, "reason": p.reason} for p in comparison.skipped)]


def _numbers(entry: Entry) -> dict[str, Any]:
    plan = entry.plan
    return {
        "strategy": plan.strategy,
        "arena_bytes": plan.arena_bytes,
        "ratio": ratio(plan),
        "seconds": entry.seconds,
        "status": plan.status,
    }


def _rows(comparison: StrategyComparison) -> Iterable[tuple[str, ...]]:
    yield ("strategy", "arena_bytes", "ratio", "seconds", "status")
    for entry in comparison.entries:
        plan = entry.plan
        yield (plan.strategy, str(plan.arena_bytes), f"{ratio(plan):.4f}", f"{entry.seconds:.3f}", plan.status)
    for passed in comparison.skipped:
        yield (passed.strategy, "-", "-", "-", passed.reason)
