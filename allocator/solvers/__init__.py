"""All strategies, and the one door to them: `solve`. The judge and the lower bound run on every plan."""

from collections.abc import Mapping
from types import MappingProxyType

from allocator.bounds import lower_bound
from allocator.check import check
from allocator.errors import PlanError, ProblemError, UnknownStrategyError, UnsupportedProblemError
from allocator.problem import FREE, Plan, Problem
from allocator.solvers.base import Solver, arena_bytes
from allocator.solvers.greedy_by_breadth import GREEDY_BY_BREADTH
from allocator.solvers.greedy_by_size import GREEDY_BY_SIZE
from allocator.solvers.local_search import LOCAL_SEARCH
from allocator.solvers.naive import NAIVE
from allocator.solvers.pinned import pinned_part
from allocator.solvers.pushdown import PUSHDOWN

BEST = "best"
HUGE = 20_000
"""Number of chunks from which "best" leaves the quadratic strategies out."""
STRATEGIES: Mapping[str, Solver] = MappingProxyType(
    {s.name: s for s in (PUSHDOWN, GREEDY_BY_SIZE, GREEDY_BY_BREADTH, LOCAL_SEARCH, NAIVE)}
)
"""Strategy by name, in the order in which ties are decided."""


def solve(problem: Problem, strategy: str = BEST, seed: int = 0) -> Plan:
    """A plan by the named strategy, or by the best of all quick ones that apply; `Plan.strategy` names its maker.

    Raises UnknownStrategyError, UnsupportedProblemError where the strategy cannot keep pinned offsets, and ProblemError
    where pinned chunks meet; PlanError, where the judge refuses the plan, is a fault of ours.
    """
    _check_pinned(problem)
    bound = lower_bound(problem)
    best: Plan | None = None
    for solver in _applicable(problem, strategy):
        plan = _judged(problem, solver, seed, bound)
        if best is None or plan.arena_bytes < best.arena_bytes:
            best = plan
        if best.arena_bytes == bound:
            break
    if best is None:
        raise UnsupportedProblemError(f"strategy {strategy!r} cannot keep pinned offsets; {_pinning()} can")
    return best


def _applicable(problem: Problem, strategy: str) -> tuple[Solver, ...]:
    if strategy != BEST and strategy not in STRATEGIES:
        raise UnknownStrategyError(f"no strategy {strategy!r}; there are {', '.join((BEST, *STRATEGIES))}")
    named = _quick(len(problem)) if strategy == BEST else (STRATEGIES[strategy],)
    is_pinned = bool((problem.pinned != FREE).any())
    return tuple(s for s in named if s.supports_pinned or not is_pinned)


def _quick(count: int) -> tuple[Solver, ...]:
    return tuple(s for s in STRATEGIES.values() if not (s.quadratic and count >= HUGE))


def _judged(problem: Problem, solver: Solver, seed: int, bound: int) -> Plan:
    offset = solver.solve(problem, seed)
    plan = Plan(offset, arena_bytes(problem, offset), bound, solver.name)
    fault = check(problem, plan.offset, plan.arena_bytes)
    if fault is not None:
        raise PlanError(f"{solver.name} made a wrong plan ({fault.kind}): {fault.message}")
    return plan


def _check_pinned(problem: Problem) -> None:
    if (problem.pinned == FREE).all():
        return
    part = pinned_part(problem)
    fault = check(part.problem, part.offset, arena_bytes(part.problem, part.offset))
    if fault is not None:
        names = " and ".join(str(part.ids[c]) for c in fault.chunks)
        raise ProblemError(
            f"pinned chunks (or chunks that overwrite them) {names} need the same bytes at the same time"
        )


def _pinning() -> str:
    return ", ".join(s.name for s in STRATEGIES.values() if s.supports_pinned)
