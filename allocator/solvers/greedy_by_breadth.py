"""Greedy by breadth for offset calculation (Pisarchyk and Lee 2020, TensorFlow Lite), with chains as one unit."""

import numpy as np
from attrs import frozen

from allocator.bounds import profile
from allocator.chains import chains
from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.placement import place_in_order, roots


@frozen(eq=False)
class GreedyByBreadth:
    """Chains in the order of the largest operator breadth that they live through, then by size. O(n^2)."""

    name: str = "greedy_by_breadth"
    traits: Traits = Traits(conflicts=False, most_chunks=20_000)

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        return Answer(place_in_order(problem, by_breadth(problem)))


def by_breadth(problem: Problem) -> list[int]:
    """The roots to place: first those alive where most bytes are; among them largest first; ties: first to begin."""
    ids, (begin, end) = roots(problem), lives(problem)
    live = profile(problem)
    breadth = np.array([live[begin[i] : end[i]].max() for i in ids.tolist()], np.int64)
    order = np.lexsort((ids, begin[ids], -problem.size[ids], -breadth))
    found: list[int] = ids[order].tolist()
    return found


def lives(problem: Problem) -> tuple[Column, Column]:
    """Begin and end of the whole chain of each root."""
    root, begin, end = chains(problem).root, problem.begin.copy(), problem.end.copy()
    np.minimum.at(begin, root, problem.begin)
    np.maximum.at(end, root, problem.end)
    return begin, end


GREEDY_BY_BREADTH = GreedyByBreadth()
