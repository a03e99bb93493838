"""What a solver is."""

from typing import Protocol

import numpy as np

from allocator.problem import Column, Problem


class Solver(Protocol):
    """A pure function from a problem to offsets, and what it declares about itself.

    `quadratic` says that its time grows with the square of the number of chunks.
    """

    @property
    def name(self) -> str:
        """The name under which a caller asks for it."""

    @property
    def supports_pinned(self) -> bool:
        """Can it keep pinned offsets?"""

    @property
    def quadratic(self) -> bool:
        """Is it too slow for huge problems?"""

    def solve(self, problem: Problem, seed: int, /) -> Column:
        """Offset of each chunk in bytes; 0 for chunks of no bytes. Same problem and seed, same offsets."""


def align_up(offset: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is not below `offset`."""
    return -(-offset // alignment) * alignment


def arena_bytes(problem: Problem, offset: Column) -> int:
    """Bytes of the smallest arena that holds all chunks."""
    return int((offset + problem.size)[problem.size > 0].max(initial=0))


def without_empty(problem: Problem, offset: Column) -> Column:
    """The same offsets, with 0 for the chunks of no bytes."""
    return np.where(problem.size > 0, offset, 0)
