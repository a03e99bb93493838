"""First fit by size: the largest chains first, each at the lowest place that is free. For problems of any size."""

import numpy as np
from attrs import evolve, frozen

from allocator.kernels.eject import ENDLESS
from allocator.problem import Problem
from allocator.solvers.base import NO_NODES, Answer, SolverOptions, Traits
from allocator.solvers.naive import completed
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.partial_plan import PartialPlan


@frozen(eq=False)
class FirstFit:
    """Places chains of overwrites as rectangles. What has no place when the time is over lies above all others."""

    name: str = "first_fit_by_size"
    traits: Traits = Traits()

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        plan, budget = PartialPlan.of(problem), Budget.of(evolve(options, nodes=NO_NODES), len(problem))
        plan.start_from(np.maximum(problem.pinned, 0))
        plan.take_out_above(0)
        while not plan.is_whole and (portion := budget.portion(len(plan))):
            budget.spend(plan.put_back(ENDLESS, portion))
        return Answer(completed(problem, plan.ids, plan.placed()))


FIRST_FIT = FirstFit()
