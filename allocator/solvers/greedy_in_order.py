"""Greedy in operator order for offset calculation: the baseline of Pisarchyk and Lee 2020, with chains as one unit."""

from attrs import frozen

from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.placement import place_in_order, roots
from allocator.solvers.placing.ranking import ranked


@frozen(eq=False)
class GreedyInOrder:
    """Chains as they begin (ties: largest first), each into the smallest gap that fits."""

    name: str = "greedy_in_order"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        return Answer(place_in_order(problem, in_order(problem)))


def in_order(problem: Problem) -> Column:
    """Returns the roots to place, first to begin first; ties: largest first."""
    ids = roots(problem)
    return ranked(problem, ids, problem.begin[ids], -problem.size[ids])


GREEDY_IN_ORDER = GreedyInOrder()
