"""The best of several strategies: cheap ones, then search from the best of their plans until time or nodes are over."""

import math
import time

from attrs import evolve, frozen

from allocator.problem import Problem
from allocator.solvers.base import NO_NODES, Answer, Solver, Task, Traits, arena_bytes, hindrance
from allocator.solvers.exact import EXACT, MOST_MEETINGS
from allocator.solvers.greedy_by_breadth import GREEDY_BY_BREADTH
from allocator.solvers.greedy_by_size import GREEDY_BY_SIZE
from allocator.solvers.hill_climb import HILL_CLIMB
from allocator.solvers.naive import NAIVE
from allocator.solvers.placing.meetings import count_meetings
from allocator.solvers.pushdown import PUSHDOWN
from allocator.solvers.strip_packing_bestfit import STRIP_PACKING_BESTFIT

_CHEAP: tuple[Solver, ...] = (PUSHDOWN, STRIP_PACKING_BESTFIT, GREEDY_BY_SIZE, GREEDY_BY_BREADTH)
_FEW_ORDERS = 20
"""Orders that hill climbing tries where the task has no limits; the first one gains most."""


@frozen(eq=False)
class Portfolio:
    """Evaluates several strategies and keeps the best plan, as Pisarchyk and Lee 2020 advise (section 6).

    Stops as soon as a plan meets the goal. The exact search comes next, where the table of who meets whom is not too
    large; hill climbing in its place where it is. With no limits in the task the exact search has `nodes` nodes: the
    same problem and seed have the same plan on every machine.
    """

    name: str = "best"
    traits: Traits = Traits()
    nodes: int = 200_000

    def solve(self, problem: Problem, task: Task) -> Answer:
        """The best plan, who made it, and what the search proved."""
        until = time.monotonic() + task.seconds
        best = _cheapest(problem, task, until)
        arena = arena_bytes(problem, best.offset)
        if arena <= task.goal:
            return best
        is_free = task.nodes == NO_NODES and task.seconds == math.inf
        rest = evolve(task, seconds=until - time.monotonic(), nodes=self.nodes if is_free else task.nodes)
        if _fits(problem, EXACT) and count_meetings(problem) <= MOST_MEETINGS:
            found, maker = EXACT.improve(problem, best.offset, rest), EXACT.name
        elif _fits(problem, HILL_CLIMB):
            climb = evolve(rest, nodes=_FEW_ORDERS if is_free else task.nodes)
            found, maker = HILL_CLIMB.improve(problem, best.offset, climb), HILL_CLIMB.name
        else:
            return best
        if arena_bytes(problem, found.offset) < arena:
            return evolve(found, maker=maker)
        return evolve(best, lower_bound=found.lower_bound)


def _cheapest(problem: Problem, task: Task, until: float) -> Answer:
    """The smallest arena of the cheap strategies; ties: the first of them."""
    best, arena = Answer(()), math.inf
    for solver in (s for s in (*_CHEAP, NAIVE) if _fits(problem, s)):
        if arena < math.inf and (arena <= task.goal or time.monotonic() >= until):
            break
        found = solver.solve(problem, task)
        if arena_bytes(problem, found.offset) < arena:
            arena = arena_bytes(problem, found.offset)
            best = Answer(found.offset, found.lower_bound, solver.name)
    return best


def _fits(problem: Problem, solver: Solver) -> bool:
    return not hindrance(problem, solver) and len(problem) <= solver.traits.most_chunks


PORTFOLIO = Portfolio()
