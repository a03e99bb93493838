"""Every chain end to end: the plan without any sharing."""

import numpy as np
from attrs import evolve, frozen

from allocator.problem import FREE, Column, Problem, align_up
from allocator.solvers.base import Answer, SolverOptions, Traits, without_empty
from allocator.solvers.placing.placement import roots
from allocator.solvers.placing.units import offsets_of


@frozen(eq=False)
class Naive:
    """Roots one behind the other above the last pinned chunk, the most aligned first, then the oldest. O(n log n)."""

    name: str = "naive"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        offset, ids = problem.pinned.copy(), roots(problem)
        is_pinned = offset[ids] != FREE
        top = int((offset + problem.size)[ids[is_pinned]].max(initial=0))
        ids = ids[~is_pinned]
        ids = ids[np.lexsort((problem.size[ids], problem.end[ids], problem.begin[ids], -problem.alignment[ids]))]
        kinds, first = np.unique(-problem.alignment[ids], return_index=True)
        for kind, group in zip((-kinds).tolist(), np.split(ids, first)[1:], strict=True):
            room = -(-problem.size[group] // kind) * kind
            offset[group] = align_up(top, kind) + np.cumsum(room) - room
            top = int(offset[group[-1]] + problem.size[group[-1]])
        return Answer(without_empty(problem, problem.chains.offsets(offset)))


NAIVE = Naive()


def completed(problem: Problem, ids: Column, offset: Column) -> Column:
    """Returns the offset of each chunk from those of the roots `ids`; roots without one (FREE) lie above all others."""
    if (offset != FREE).all():
        return offsets_of(problem, ids, offset)
    placed = np.full(len(problem), FREE)
    placed[ids] = offset
    return NAIVE.solve(evolve(problem, pinned=placed), SolverOptions()).offset
