"""First fit: chains one by one, each at the lowest place that is free. For problems of any size."""

import numpy as np
from attrs import frozen

from allocator.kernels.eject import ENDLESS
from allocator.kernels.first_fit import OFFSET, WIDTH, place_by_begin
from allocator.kernels.mode import KernelMode
from allocator.problem import Problem, stable_order
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.naive import completed
from allocator.solvers.placing.units import units_by_begin
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.partial_plan import PartialPlan


@frozen(eq=False)
class FirstFit:
    """Places chains of overwrites as rectangles, the largest first.

    What has no place when the time is over lies above all others.
    """

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


@frozen(eq=False)
class FirstFitByBegin:
    """Places chains of overwrites as rectangles in the order in which they begin; it knows of no later ones.

    Takes time for each pair that is alive at once, and little of it: what is low is not moved any more. Of equally old
    ones the longest-lived come first, then the largest.
    """

    name: str = "first_fit_by_begin"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_by_begin(problem)
        count = len(units.ids)
        mode = KernelMode.of(count)
        begin, end, size, alignment, leaving = mode.numbers(
            units.begin, units.end, units.size, units.alignment, stable_order(units.end)
        )
        (placed,) = mode.zeros(WIDTH * (count + 1))
        mode.kernel(place_by_begin)(begin, end, size, alignment, leaving, placed)
        return Answer(units.offsets(problem, np.array(placed)[OFFSET : WIDTH * count : WIDTH]))


FIRST_FIT = FirstFit()
FIRST_FIT_BY_BEGIN = FirstFitByBegin()
