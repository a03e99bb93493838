"""Greedy by size for offset calculation (Pisarchyk and Lee 2020, TensorFlow Lite), with chains as one unit."""

from attrs import frozen

from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.placement import place_in_order, roots
from allocator.solvers.placing.ranking import ranked


@frozen(eq=False)
class GreedyBySize:
    """Largest roots first (ties: first to begin), each into the smallest gap that fits."""

    name: str = "greedy_by_size"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        return Answer(place_in_order(problem, by_size(problem)))


def by_size(problem: Problem) -> Column:
    """Returns the roots to place, largest first; ties: first to begin."""
    ids = roots(problem)
    return ranked(problem, ids, -problem.size[ids])


GREEDY_BY_SIZE = GreedyBySize()
