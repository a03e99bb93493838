"""Properties of problems that a strategy declares to support."""

from allocator.problem import FREE, Problem
from allocator.solvers.base import Solver


def can_take(solver: Solver, problem: Problem) -> bool:
    """Returns whether the solver declares to support all properties of the problem."""
    return (
        (solver.traits.pinned or not (problem.pinned != FREE).any())
        and (solver.traits.overwrites or not len(problem.src))
        and (solver.traits.conflicts or problem.conflicts is None)
    )
