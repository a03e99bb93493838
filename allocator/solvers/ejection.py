"""Ejection search: chunks are placed below a goal that shrinks, and what is in the way of one is taken out for it."""

import math
from collections.abc import Iterator

from attrs import define, evolve, frozen

from allocator.problem import FREE, Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.partial_plan import PartialPlan, PlanRepair
from allocator.solvers.search.steps import Steps, answer_of

_SHARE = 0.3
"""The part of the gap between arena and goal by which the arena is to shrink at once, at most."""
_CONCERNED = 20
"""Units that are concerned for each one that is taken out first: those near it, if there are that many."""
_PATIENCE, _LEAST_STEPS = 4.0, 2_000
"""Steps for each unit that is concerned, and in all, after which a target is given up, at first."""
MOST_PATIENCE = 1e9
"""Steps for each unit that is concerned, at most: a search that gets nowhere may last for thousands of targets."""
_LEAST_SHARE = 1e-3
"""After targets by a smaller part of the gap were given up, larger parts are tried again."""


@frozen(eq=False)
class Ejection:
    """Searches from first fit by size. In a step, a unit gets a place below a target.

    A step is one node, or several where it looks at more than sixty units that are alive at the same time.

    A target lies between the arena of the best plan and the one that is good enough. After a target that is reached
    comes a lower one. A target that takes too many steps is given up: the search goes back to the best plan, with a
    higher target and more patience. Chains of overwrites are rectangles here, so that the bytes that an overwriter
    leaves free stay free. With no limit given, it has `nodes` nodes, which take about two seconds, or fewer where there
    are few units.
    """

    name: str = "ejection"
    traits: Traits = Traits()
    nodes: int = 600_000
    by_chunk: int = 1_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        start = FIRST_FIT.solve(problem, evolve(options, until=math.inf)).offset
        nodes = min(self.nodes, self.by_chunk * len(problem))
        return answer_of(self.search(problem, start, options, Budget.of(options, nodes)))

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> "_Search":
        """Returns a search from a plan: an offset for each chunk."""
        is_pinned = (problem.pinned != FREE) & (problem.size > 0)
        pinned_end = int((problem.pinned + problem.size)[is_pinned].max(initial=0))
        return _Search(PartialPlan.of(problem, options.seed), budget, offset, max(options.goal, pinned_end))


@define(eq=False)
class _Search(PlanRepair):
    """The best plan so far, and the one that is repaired."""

    goal: int

    def take(self, offset: Column) -> None:
        """Goes on from another plan: an offset for each chunk."""
        super().take(offset)
        self.plan.start_from(offset)

    def steps(self) -> Iterator[None]:
        """Searches until the goal is reached, or the budget spent."""
        share, patience = _SHARE, _PATIENCE
        while self.arena > self.goal and not self.budget.is_over:
            target = self.arena - max(1, int((self.arena - self.goal) * share))
            self.plan.take_out_above(target)
            concerned = min(len(self.plan), _CONCERNED * self.plan.waiting)
            if (yield from reach(self.plan, target, max(int(patience * concerned), _LEAST_STEPS), self.budget)):
                super().take(self.plan.offsets())
                share = min(_SHARE, 2 * share)
            else:
                self.plan.start_from(self.best)
                share = share / 2 if share > _LEAST_SHARE else _SHARE
                patience = min(1.5 * patience, MOST_PATIENCE)


def reach(plan: PartialPlan, target: int, steps: int, budget: Budget) -> Steps[bool]:
    """Returns whether all units have a place below a target, after so many steps."""
    while not plan.is_whole and not plan.is_stuck:
        done = plan.put_back(target, steps, budget)
        if not done:
            return False
        steps -= done
        yield
    if plan.is_stuck:
        budget.spend(1)  # so that a search in which nothing can move ends
    return plan.is_whole


EJECTION = Ejection()
