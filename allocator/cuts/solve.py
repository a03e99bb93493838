"""The best partition that is found, and what no partition goes below."""

import math

from attrs import frozen

from allocator.cuts.bound import lower_bound, part_of_ends
from allocator.cuts.in_order import Memory, Segment, cut_in_order
from allocator.cuts.judge import Measure, Verdict, verdict
from allocator.cuts.problem import Cut, CutProblem
from allocator.cuts.search import Branching
from allocator.cuts.worth import objective_of
from allocator.problem import Column
from allocator.progress import Activity

NODES = 50_000
"""Steps of the branch and bound."""
_MOST_BRANCHED = 256
"""Operators up to which partitions that are no cuts of the order are looked at."""
_TRIES = 24
"""Cuts of the order that are planned."""
_CLOSE = 1e-9


@frozen
class Solution:
    """The best partition, if one was found, and a proved lower bound of the objective of all; infinity: none fits."""

    cuts: tuple[Cut, ...]
    bound: float

    @property
    def is_optimal(self) -> bool:
        """Returns whether no partition is better."""
        return any(cut.objective <= self.bound * (1 + _CLOSE) for cut in self.cuts)


def solve(problem: CutProblem, likely: Column, measure: Measure, nodes: int = NODES) -> Solution:
    """Returns the best partition: cuts of the order first, by what operators are `likely` to need beside weights.

    All partitions follow, by branch and bound, where the bound does not prove the cut to be the best.
    """
    bound = lower_bound(problem)
    if math.isinf(bound):
        return Solution((), bound)
    with Activity("cutting"):
        first = _in_order(problem, likely, measure)
    solution = Solution(first, bound)
    if solution.is_optimal or len(problem) > _MOST_BRANCHED:
        return solution
    with Activity("branching"):
        search = Branching(problem, measure, nodes, first)
        search.run()
    if search.is_whole:
        least = min([search.unknown, *(cut.objective for cut in search.best)])
        bound = max(bound, least)
    return Solution(search.best, bound)


def _in_order(problem: CutProblem, likely: Column, measure: Measure) -> tuple[Cut, ...]:
    """Returns the first cut that fits, of those that are likely to, and then of those that may."""
    factor, measured = 1.0, dict[Segment, float]()
    of_operator = likely
    for _ in range(_TRIES):
        ends = cut_in_order(problem, Memory(of_operator, factor, measured))
        if ends is None and of_operator is likely:
            of_operator, factor = problem.least, 1.0
            ends = cut_in_order(problem, Memory(of_operator, factor, measured))
        if ends is None:
            return ()
        part_of = part_of_ends(ends)
        if verdict(problem, part_of, measure) is Verdict.FITS:
            return (Cut(part_of, objective_of(problem, part_of)),)
        starts = (0, *ends)
        for part, (begin, end) in enumerate(zip(starts, ends, strict=False)):
            measured[part, begin, end] = measure(tuple(range(begin, end)), problem.capacities[part]).nbytes
        if of_operator is likely:
            factor *= 1.1
    return ()
