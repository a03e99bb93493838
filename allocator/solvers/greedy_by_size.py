"""Greedy by size for offset calculation (Pisarchyk and Lee 2020, TensorFlow Lite), with chains as one unit."""

import numpy as np
from attrs import frozen

from allocator.problem import Column, Problem
from allocator.solvers.placement import place_in_order, roots


@frozen(eq=False)
class GreedyBySize:
    """Largest roots first (ties: first to begin), each into the smallest gap that fits. O(n^2)."""

    name: str = "greedy_by_size"
    supports_pinned: bool = True
    quadratic: bool = True

    def solve(self, problem: Problem, _seed: int = 0) -> Column:
        """Offset of each chunk in bytes."""
        return place_in_order(problem, by_size(problem))


def by_size(problem: Problem) -> list[int]:
    """The roots to place, largest first; ties: first to begin."""
    ids = roots(problem)
    order = np.lexsort((ids, problem.begin[ids], -problem.size[ids]))
    found: list[int] = ids[order].tolist()
    return found


GREEDY_BY_SIZE = GreedyBySize()
