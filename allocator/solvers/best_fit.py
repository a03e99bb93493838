"""MegEngine's BEST_FIT: a heap of real addresses. The smallest free block that fits is split, else the arena grows."""

import numpy as np
from attrs import frozen

from allocator.kernels.freelist import WIDTH, place_best_fit
from allocator.kernels.mode import KernelMode
from allocator.problem import Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.timeline import timeline

UNLOADED = 10_000
"""Chunks, below which the plain kernel takes 0.2 seconds at most: less than loading numba."""


@frozen(eq=False)
class BestFit:
    """O(n log n). It places chunks as they begin and knows of no later ones, so offsets cannot be pinned."""

    name: str = "best_fit"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        line = timeline(problem)
        count = len(line.ids)
        mode = KernelMode.of(count, UNLOADED)
        begin, end, size, alignment, dest, at, freed = mode.numbers(
            line.begin, line.end, line.size, line.alignment, line.dest, line.at, line.freed
        )
        blocks, held, offset = mode.zeros(WIDTH * (2 * count + 2), count, count)
        cell = int(np.gcd.reduce(line.alignment[line.root])) if count else 1
        mode.kernel(place_best_fit)(begin, end, size, alignment, dest, at, freed, cell, blocks, held, offset)
        return Answer(line.offsets(problem, offset))


BEST_FIT = BestFit()
