"""The smallest budget within which a run with eviction ends, by bisection."""

from attrs import frozen

from allocator.errors import OutOfMemoryError, TooMuchWorkError
from allocator.eviction.evict import Eviction, evict
from allocator.problem import NO_CAPACITY
from allocator.recompute.sequence import least_bytes
from allocator.recompute.work import RecomputeProblem

PRECISION = 0.01
"""A budget is found that is at most by such a share of it above one that does not suffice."""


@frozen(eq=False)
class Smallest:
    """A budget that suffices, and what comes of it.

    Budgets above it nearly always suffice too, but a heuristic makes no promise.
    """

    budget: int
    eviction: Eviction


def smallest_budget(work: RecomputeProblem, name: str, heap: str) -> Smallest:
    """Returns the smallest budget that bisection finds, between what a step needs and what a run without a budget."""
    whole = evict(work, NO_CAPACITY, name, heap)
    best = Smallest(whole.peak_reserved, whole)
    below = min(least_bytes(work), best.budget) - 1
    while best.budget - below > max(PRECISION * best.budget, 1):
        budget = (below + best.budget) // 2
        try:
            best = Smallest(budget, evict(work, budget, name, heap))
        except (OutOfMemoryError, TooMuchWorkError):
            below = budget
    return best
