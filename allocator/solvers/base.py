"""What a solver is: a pure function from a problem and a task to an answer, and what it declares about itself."""

import math
from typing import Protocol

import numpy as np
from attrs import field, frozen

from allocator.problem import FREE, Column, Problem, column

NO_NODES = 2**62
"""A budget of nodes that no search reaches."""
ANY_COUNT = 2**62
"""A limit of chunks, or of pairs of them, that no problem reaches."""


@frozen
class SolverOptions:
    """Options of a solver.

    An arena of `goal` bytes or less is good enough. A search stops at the moment `until` of `time.monotonic`, or after
    `nodes` nodes (whatever a strategy counts as one): with nodes alone, same seed, same plan, however fast the machine.
    """

    seed: int = 0
    until: float = math.inf
    nodes: int = NO_NODES
    goal: int = 0

    @property
    def is_limited(self) -> bool:
        """Returns whether nodes or time are limited."""
        return self.nodes != NO_NODES or self.until < math.inf


@frozen(eq=False)
class Answer:
    """Offset of each chunk in bytes (0 for chunks of no bytes), and what the solver itself proved: no arena is smaller.

    `lower_bound` is 0 where a solver proves nothing. `maker`: the strategy that found it, where a solver asks others.
    `nodes`: what it took, in nodes of a search, where that does not follow from the number of chunks; else 0.
    """

    offset: Column = field(converter=column)
    lower_bound: int = 0
    maker: str = ""
    nodes: int = 0


@frozen
class Traits:
    """The kinds of problems that a solver accepts. All accept alignment and padding.

    `most_chunks`: the portfolio leaves it out of larger problems, for which it would be too slow.
    """

    pinned: bool = True
    overwrites: bool = True
    conflicts: bool = True
    most_chunks: int = ANY_COUNT


class Solver(Protocol):
    """One strategy."""

    @property
    def name(self) -> str:
        """The name under which a caller asks for it."""

    @property
    def traits(self) -> Traits:
        """The traits of the problems that it accepts."""

    def solve(self, problem: Problem, options: SolverOptions, /) -> Answer:
        """Returns a plan that keeps the problem. Same problem, seed and nodes (no limit of time), same offsets."""


def unsupported_reason(problem: Problem, solver: Solver) -> str:
    """Returns why the solver cannot solve the problem; "" where it can."""
    if not solver.traits.pinned and (problem.pinned != FREE).any():
        return "pinned offsets"
    if not solver.traits.overwrites and len(problem.src):
        return "overwrites"
    if not solver.traits.conflicts and problem.conflicts is not None:
        return "conflicts in place of lifetimes"
    return ""


def arena_bytes(problem: Problem, offset: Column) -> int:
    """Returns the bytes of the smallest arena that holds all chunks."""
    return int((offset + problem.size)[problem.size > 0].max(initial=0))


def without_empty(problem: Problem, offset: Column) -> Column:
    """Returns the same offsets, with 0 for the chunks of no bytes."""
    return np.where(problem.size > 0, offset, 0)
