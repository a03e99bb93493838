"""The best of several strategies: cheap ones, then search from the best of their plans until time or nodes are over."""

import math
import time

from attrs import frozen

from allocator.bodies import count_meetings
from allocator.problem import Problem
from allocator.solvers.base import NO_NODES, Answer, Solver, Task, Traits, arena_bytes, hindrance
from allocator.solvers.exact import EXACT
from allocator.solvers.greedy_by_breadth import GREEDY_BY_BREADTH
from allocator.solvers.greedy_by_size import GREEDY_BY_SIZE
from allocator.solvers.naive import NAIVE
from allocator.solvers.pushdown import PUSHDOWN
from allocator.solvers.strip_packing_bestfit import STRIP_PACKING_BESTFIT

_CHEAP: tuple[Solver, ...] = (PUSHDOWN, STRIP_PACKING_BESTFIT, GREEDY_BY_SIZE, GREEDY_BY_BREADTH)
_MOST_MEETINGS = 4_000_000
"""Pairs of chunks, beyond which a table of them takes too long."""


@frozen(eq=False)
class Portfolio:
    """Evaluates several strategies and keeps the best plan, as Pisarchyk and Lee 2020 advise (section 6).

    Stops as soon as a plan meets the goal. With no limits in the task the search has `nodes` nodes, so that the same
    problem and seed have the same plan on every machine.
    """

    name: str = "best"
    traits: Traits = Traits()
    nodes: int = 200_000

    def solve(self, problem: Problem, task: Task) -> Answer:
        """The best plan, who made it, and what the search proved."""
        until = time.monotonic() + task.seconds
        best = _cheapest(problem, task, until)
        arena = arena_bytes(problem, best.offset)
        if arena <= task.goal or not _can_search(problem):
            return best
        is_free = task.nodes == NO_NODES and task.seconds == math.inf
        rest = Task(task.seed, until - time.monotonic(), self.nodes if is_free else task.nodes, task.goal)
        found = EXACT.improve(problem, best.offset, rest)
        is_better = arena_bytes(problem, found.offset) < arena
        return Answer(found.offset, found.lower_bound, EXACT.name if is_better else best.maker)


def _cheapest(problem: Problem, task: Task, until: float) -> Answer:
    """The smallest arena of the cheap strategies; ties: the first of them."""
    best, arena = Answer(()), math.inf
    for solver in (s for s in (*_CHEAP, NAIVE) if not hindrance(problem, s) and len(problem) <= s.traits.most_chunks):
        if arena < math.inf and (arena <= task.goal or time.monotonic() >= until):
            break
        found = solver.solve(problem, task)
        if arena_bytes(problem, found.offset) < arena:
            arena = arena_bytes(problem, found.offset)
            best = Answer(found.offset, found.lower_bound, solver.name)
    return best


def _can_search(problem: Problem) -> bool:
    is_small = len(problem) <= EXACT.traits.most_chunks and count_meetings(problem) <= _MOST_MEETINGS
    return is_small and not hindrance(problem, EXACT)


PORTFOLIO = Portfolio()
