"""Ejection search: chunks are placed below a goal that shrinks, and what is in the way of one is taken out for it."""

import math
from collections.abc import Iterator

from attrs import define, evolve, field, frozen

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
_MORE_PATIENCE = 1.5
"""How many times as many steps there are after each target that was given up."""
_MOST_PATIENCE = 1e9
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
        targets = Targets(_SHARE)
        while self.arena > self.goal and not self.budget.is_over:
            target = targets.below(self.arena, self.goal)
            self.plan.take_out_above(target)
            steps = targets.steps(min(len(self.plan), _CONCERNED * self.plan.waiting))
            is_reached = yield from reach(self.plan, target, steps, self.budget)
            targets.learn(is_reached)
            if is_reached:
                super().take(self.plan.offsets())
            else:
                self.plan.start_from(self.best)


@define
class Targets:
    """How far the next target lies below the arena, and when it is given up: what the targets before it tell.

    The arena is to shrink by the part `most` of the gap between arena and goal at once, at most.
    """

    most: float
    _share: float = field(init=False)
    _patience: float = field(default=_PATIENCE, init=False)

    def __attrs_post_init__(self) -> None:
        self._share = self.most

    def below(self, arena: int, goal: int) -> int:
        """Returns the next target, in bytes."""
        return arena - max(1, int((arena - goal) * self._share))

    def steps(self, concerned: int) -> int:
        """Returns the steps after which a target is given up that concerns so many units."""
        return max(int(self._patience * concerned), _LEAST_STEPS)

    def learn(self, is_reached: bool) -> None:
        """Takes note whether a target was reached."""
        if is_reached:
            self._share = min(self.most, 2 * self._share)
        else:
            self._share = self._share / 2 if self._share > _LEAST_SHARE else self.most
            self._patience = min(_MORE_PATIENCE * self._patience, _MOST_PATIENCE)


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
