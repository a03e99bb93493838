"""The best of several strategies: cheap ones, then search from the best of their plans until time or nodes are over."""

import math
import time

from attrs import evolve, frozen

from allocator.problem import Problem
from allocator.progress import current
from allocator.solvers.base import NO_NODES, Answer, Solver, SolverOptions, Traits, arena_bytes, unsupported_reason
from allocator.solvers.ejection import EJECTION, Ejection
from allocator.solvers.exact import EXACT, MOST_CONFLICTS, Exact
from allocator.solvers.greedy import GREEDY_BY_BREADTH, GREEDY_BY_SIZE
from allocator.solvers.hill_climb import HILL_CLIMB, HillClimb
from allocator.solvers.megengine import PUSHDOWN_SORTED
from allocator.solvers.naive import NAIVE
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.strip_packing_bestfit import STRIP_PACKING_BESTFIT

_CHEAP: tuple[Solver, ...] = (PUSHDOWN_SORTED, GREEDY_BY_SIZE, GREEDY_BY_BREADTH, STRIP_PACKING_BESTFIT)
"""The cheapest first: the first that meets the goal is the last."""
Improving = Exact | HillClimb | Ejection
ImprovingStrategy = tuple[Improving, int, int]
"""A strategy that improves a plan; the nodes that it has by default; the most chunks that may meet."""
_ORDERS = 100
"""Orders that hill climbing tries where the task has no limits. More of them may find a smaller arena and take longer;
tools/bench_solvers.py shows both."""
_DENSE = 100
"""Conflicts of a chunk, on average, beyond which such orders are fewer."""
_MOST_EXPLICIT_CONFLICTS = 200_000
"""The most pairs of conflicts with which the exact search begins: with more, its start takes too long."""
_QUICK_CONFLICTS = 1_500
"""Pairs of conflicts beyond which the exact search has fewer nodes by default, as each takes longer."""


@frozen(eq=False)
class Portfolio:
    """Evaluates several strategies and keeps the best plan, as Pisarchyk and Lee 2020 advise (section 6).

    Stops as soon as a plan meets the goal. The exact search comes next, where the table of who meets whom is not too
    large; ejection search in its place where it is, and hill climbing before it where there are conflicts. With no
    limits in the task the exact search has `nodes` nodes, or less: the same problem and seed have the same plan on
    every machine.
    """

    name: str = "best"
    traits: Traits = Traits()
    nodes: int = 200_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the best plan, the strategy that made it, and the bound that the search proved."""
        until = time.monotonic() + options.seconds
        best, seen = _cheapest(problem, options, until), current()
        if arena_bytes(problem, best.offset) <= options.goal:
            return best
        for solver, nodes in self._searches(problem):
            if arena_bytes(problem, best.offset) <= options.goal:
                break
            is_free = options.nodes == NO_NODES and options.seconds == math.inf
            seen.item, seen.best = f"by {solver.name}", arena_bytes(problem, best.offset)
            rest = evolve(options, seconds=until - time.monotonic(), nodes=nodes if is_free else options.nodes)
            best = _better(problem, best, evolve(solver.improve(problem, best.offset, rest), maker=solver.name))
        return best

    def _searches(self, problem: Problem) -> list[tuple[Improving, int]]:
        """Returns those that come after the cheap ones, and the nodes of each where the task has no limits."""
        meet = count_conflicts(problem)
        if problem.conflicts is None:
            strategies: tuple[ImprovingStrategy, ...] = ((EXACT, self.nodes, MOST_CONFLICTS),)
            if meet > MOST_CONFLICTS or not _fits(problem, EXACT):
                strategies = ((EJECTION, NO_NODES, meet),)
        else:
            nodes = self.nodes * _QUICK_CONFLICTS // max(meet, _QUICK_CONFLICTS)
            orders = _ORDERS * _DENSE // max(meet // max(len(problem), 1), _DENSE)
            strategies = ((HILL_CLIMB, orders, MOST_CONFLICTS), (EXACT, nodes, _MOST_EXPLICIT_CONFLICTS))
        return [(solver, nodes) for solver, nodes, most in strategies if meet <= most and _fits(problem, solver)]


def _better(problem: Problem, one: Answer, other: Answer) -> Answer:
    """Returns the smaller of two plans, with all that was proved; ties: the first."""
    best = min(one, other, key=lambda answer: arena_bytes(problem, answer.offset))
    return evolve(best, lower_bound=max(one.lower_bound, other.lower_bound))


def _cheapest(problem: Problem, options: SolverOptions, until: float) -> Answer:
    """Returns the smallest arena of the cheap strategies; ties: the first of them."""
    best, arena, seen = Answer(()), math.inf, current()
    for solver in (s for s in (*_CHEAP, NAIVE) if _fits(problem, s)):
        if arena < math.inf and (arena <= options.goal or time.monotonic() >= until):
            break
        seen.item = f"by {solver.name}"
        answer = solver.solve(problem, options)
        if arena_bytes(problem, answer.offset) < arena:
            seen.best = arena = arena_bytes(problem, answer.offset)
            best = Answer(answer.offset, answer.lower_bound, solver.name)
    return best


def _fits(problem: Problem, solver: Solver) -> bool:
    return not unsupported_reason(problem, solver) and len(problem) <= solver.traits.most_chunks


PORTFOLIO = Portfolio()
