"""Greedy strategies for offset calculation: chains are placed one by one in an order, each into the smallest gap.

Pisarchyk and Lee 2020; TensorFlow Lite has the first two. A chain of overwrites is placed as one unit.
"""

from collections.abc import Callable

from attrs import frozen

from allocator.breadths import breadths
from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.naive import completed
from allocator.solvers.placing.placement import MOST_PAIRS_ONCE, NO_LIMITS, Placer, roots, suitable_search
from allocator.solvers.placing.ranking import chain_lifetimes, ranked


@frozen(eq=False)
class Greedy:
    """One strategy: `order` gives the roots of a problem in the order in which they are placed.

    What has no place when the time is over lies above all others.
    """

    name: str
    order: Callable[[Problem], Column]
    traits: Traits = Traits()

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        return Answer(place_in_order(problem, self.order(problem), options))


def place_in_order(problem: Problem, order: Column, options: SolverOptions = NO_LIMITS) -> Column:
    """Returns the offset of each chunk, when chains are placed in this order of their roots, pinned ones first.

    O(n log n + pairs of chunks that meet), or less.
    """
    placer = Placer.by(suitable_search(problem, MOST_PAIRS_ONCE), problem)
    return completed(problem, placer.ids, placer.place(placer.bodies(order), options))


def by_size(problem: Problem) -> Column:
    """Returns the roots to place, largest first; ties: first to begin."""
    ids = roots(problem)
    return ranked(problem, ids, -problem.size[ids])


def by_breadth(problem: Problem) -> Column:
    """Returns the roots by the largest breadth at which they are alive (ties: the first tick), then largest first."""
    ids, (begin, end) = roots(problem), chain_lifetimes(problem)
    return ranked(problem, ids, breadths(problem).ranks(begin[ids], end[ids]), -problem.size[ids])


def in_order(problem: Problem) -> Column:
    """Returns the roots to place, first to begin first; ties: largest first."""
    ids = roots(problem)
    return ranked(problem, ids, problem.begin[ids], -problem.size[ids])


GREEDY_BY_SIZE = Greedy("greedy_by_size", by_size)
"""Largest roots first (TensorFlow Lite)."""
GREEDY_BY_BREADTH = Greedy("greedy_by_breadth", by_breadth)
"""Ticks by operator breadth, largest first; in each, the chains alive by size (TensorFlow Lite)."""
GREEDY_IN_ORDER = Greedy("greedy_in_order", in_order)
"""Chains as they begin: operator order, the baseline of the paper."""
