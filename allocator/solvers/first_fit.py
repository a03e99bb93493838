"""First fit by size: the largest chains first, each at the lowest place that is free. For problems of any size."""

import numpy as np
from attrs import frozen

from allocator.kernels.eject import ENDLESS
from allocator.problem import Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
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
        plan, budget = PartialPlan.of(problem), Budget.of_time(options)
        plan.start_from(np.maximum(problem.pinned, 0))
        plan.take_out_above(0)
        while not plan.is_whole and plan.put_back(ENDLESS, len(plan), budget):
            pass
        return Answer(completed(problem, plan.ids, plan.placed()))


FIRST_FIT = FirstFit()
