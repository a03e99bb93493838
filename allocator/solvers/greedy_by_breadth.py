"""Greedy by breadth for offset calculation (Pisarchyk and Lee 2020, TensorFlow Lite), with chains as one unit."""

from attrs import frozen

from allocator.breadths import breadths
from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.placement import place_in_order, roots
from allocator.solvers.placing.ranking import chain_lifetimes, ranked
from allocator.solvers.placing.sweep_events import breadth_ranks


@frozen(eq=False)
class GreedyByBreadth:
    """Ticks by operator breadth, largest first; in each, the chains alive by size, each into the smallest gap."""

    name: str = "greedy_by_breadth"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        return Answer(place_in_order(problem, by_breadth(problem)))


def by_breadth(problem: Problem) -> Column:
    """Returns the roots by the largest breadth at which they are alive (ties: the first tick), then largest first."""
    ids, (begin, end) = roots(problem), chain_lifetimes(problem)
    live = breadths(problem)
    return ranked(problem, ids, breadth_ranks(begin[ids], end[ids], live.tick, live.value), -problem.size[ids])


GREEDY_BY_BREADTH = GreedyByBreadth()
