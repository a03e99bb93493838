"""All strategies, and the one door to them: `solve`. The judge and the lower bound run on every plan."""

import math
import time
from collections.abc import Mapping

from allocator.bounds import proved_bound
from allocator.check.bound import check_bound
from allocator.check.offsets import check
from allocator.cliques.orders import looks_within
from allocator.errors import BoundError, PlanError, UnknownStrategyError, UnsupportedProblemError
from allocator.lazy import Lazy
from allocator.problem import NO_CAPACITY, Bound, Plan, Problem
from allocator.progress import Activity
from allocator.solvers.base import NO_NODES, Solver, SolverOptions, arena_bytes, unsupported_reason
from allocator.solvers.portfolio import PORTFOLIO
from allocator.solvers.preconditions import check_chains, check_pinned

BEST = PORTFOLIO.name
EXHAUSTED = "exact search"
"""The reason of a bound that a search proved: it tried all smaller arenas."""
_JUDGE, _MOST_FOR_JUDGE = 3e-7, 0.5
"""Seconds of the judge for each chunk of a million, and the part of a limit that is kept for it at most."""
STRATEGIES: Mapping[str, Solver] = Lazy(
    __name__,
    {
        "pushdown": "megengine:PUSHDOWN",
        "pushdown_sorted": "megengine:PUSHDOWN_SORTED",
        "best_fit": "megengine:BEST_FIT",
        "best_fit_sorted": "megengine:BEST_FIT_SORTED",
        "interval_move": "megengine:INTERVAL_MOVE",
        "strip_packing_bestfit": "strip_packing:STRIP_PACKING_BESTFIT",
        "strip_packing_cover": "strip_packing:STRIP_PACKING_COVER",
        "greedy_by_size": "greedy:GREEDY_BY_SIZE",
        "greedy_by_breadth": "greedy:GREEDY_BY_BREADTH",
        "greedy_in_order": "greedy:GREEDY_IN_ORDER",
        "first_fit_by_size": "first_fit:FIRST_FIT",
        "first_fit_by_begin": "first_fit:FIRST_FIT_BY_BEGIN",
        "shared_by_breadth": "shared_greedy:SHARED_BY_BREADTH",
        "shared_by_size": "shared_greedy:SHARED_BY_SIZE",
        "shared_by_size_improved": "shared_greedy:SHARED_BY_SIZE_IMPROVED",
        "shared_in_order": "shared_greedy:SHARED_IN_ORDER",
        "shared_equality": "shared_greedy:SHARED_EQUALITY",
        "shared_min_cost_flow": "shared_min_cost_flow:SHARED_MIN_COST_FLOW",
        "hill_climb": "hill_climb:HILL_CLIMB",
        "ejection": "ejection:EJECTION",
        "exact": "exact:EXACT",
        "naive": "naive:NAIVE",
    },
)
"""Strategy by name, in the order in which they are listed."""


def solve(
    problem: Problem,
    strategy: str | Solver = BEST,
    seed: int = 0,
    *,
    capacity: int = NO_CAPACITY,
    seconds: float = math.inf,
    nodes: int = NO_NODES,
) -> Plan:
    """Plans by the named strategy, or by the best of a portfolio; `Plan.strategy` names the one that was used.

    A solver of the caller's may stand in place of a name.

    With a `capacity` the first plan that fits is good enough, else the smallest arena is looked for. `seconds` limit
    all of it, and `nodes` the strategies that search; see `SolverOptions`. A first plan is made and judged whatever the
    limits are.

    Raises UnknownStrategyError, UnsupportedProblemError where the strategy cannot take the problem, and ProblemError
    where two pinned chunks overlap. Raises PlanError where the judge refuses the plan, which is an error in a solver.
    """
    until = time.monotonic() + seconds - min(_JUDGE * len(problem), _MOST_FOR_JUDGE * seconds)
    check_chains(problem)
    check_pinned(problem)
    is_limited = nodes != NO_NODES or seconds < math.inf
    bound = proved_bound(problem, looks_within(nodes, seconds)) if is_limited else proved_bound(problem)
    goal = max(bound.nbytes, capacity) if capacity != NO_CAPACITY else bound.nbytes
    solver = _named(problem, strategy) if isinstance(strategy, str) else strategy
    with Activity("placing", f"by {solver.name}", bound=bound.nbytes, limit=seconds):
        return _judged(problem, solver, SolverOptions(seed, until, nodes, goal), bound, capacity)


def find_strategy(name: str) -> Solver:
    """Returns the solver of that name, or the portfolio. Raises UnknownStrategyError."""
    if name == BEST:
        return PORTFOLIO
    if name not in STRATEGIES:
        raise UnknownStrategyError(f"no strategy {name!r}; there are {', '.join((BEST, *STRATEGIES))}")
    return STRATEGIES[name]


def _named(problem: Problem, strategy: str) -> Solver:
    solver = find_strategy(strategy)
    if solver is PORTFOLIO:
        return solver
    obstacle = unsupported_reason(problem, solver)
    if obstacle:
        others = ", ".join(s.name for s in STRATEGIES.values() if not unsupported_reason(problem, s))
        raise UnsupportedProblemError(f"strategy {strategy!r} cannot take {obstacle}; {others} can")
    return solver


def _judged(problem: Problem, solver: Solver, options: SolverOptions, bound: Bound, capacity: int) -> Plan:
    answer = solver.solve(problem, options)
    arena = arena_bytes(problem, answer.offset)
    fault = check(problem, answer.offset, arena)
    if fault is not None:
        raise PlanError(f"{solver.name} made a wrong plan ({fault.kind}): {fault.message}")
    if answer.lower_bound > arena:
        raise PlanError(f"{solver.name} claims to have proved {answer.lower_bound} bytes, but its arena has {arena}")
    bound = bound.raised(Bound(answer.lower_bound, EXHAUSTED))
    fault = check_bound(problem, bound)
    if fault is not None:
        raise BoundError(f"the lower bound of {bound.nbytes} bytes is wrong ({fault.kind}): {fault.message}")
    return Plan(answer.offset, arena, bound, answer.maker or solver.name, capacity)
