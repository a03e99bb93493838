"""Every chain end to end: the plan without any sharing."""

import numpy as np
from attrs import frozen

from allocator.chains import chains
from allocator.problem import FREE, Problem
from allocator.solvers.base import Answer, Task, Traits, align_up, without_empty


@frozen(eq=False)
class Naive:
    """Roots one behind the other, in the order of ids, above the last pinned chunk. O(n)."""

    name: str = "naive"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        found = chains(problem)
        is_pinned = problem.pinned != FREE
        top = int((problem.pinned + problem.size)[is_pinned & (problem.size > 0)].max(initial=0))
        offset = problem.pinned.copy()
        for root in np.flatnonzero((found.root == np.arange(len(problem))) & ~is_pinned).tolist():
            offset[root] = align_up(top, int(problem.alignment[root]))
            top = int(offset[root] + problem.size[root])
        return Answer(without_empty(problem, found.offsets(offset)))


NAIVE = Naive()
