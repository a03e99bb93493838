"""Greedy by size for offset calculation (Pisarchyk and Lee 2020, TensorFlow Lite), with chains as one unit."""

import numpy as np
from attrs import frozen

from allocator.problem import Problem
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.placement import place_in_order, roots


@frozen(eq=False)
class GreedyBySize:
    """Largest roots first (ties: first to begin), each into the smallest gap that fits. O(n^2)."""

    name: str = "greedy_by_size"
    traits: Traits = Traits(conflicts=False, most_chunks=20_000)

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        return Answer(place_in_order(problem, by_size(problem)))


def by_size(problem: Problem) -> list[int]:
    """The roots to place, largest first; ties: first to begin."""
    ids = roots(problem)
    order = np.lexsort((ids, problem.begin[ids], -problem.size[ids]))
    found: list[int] = ids[order].tolist()
    return found


GREEDY_BY_SIZE = GreedyBySize()
