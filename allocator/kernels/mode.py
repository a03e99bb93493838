"""How kernels run: on lists and plain where the problem is small, else on columns and compiled. Same source and result.

Plain kernels run on lists, because Python reads an element of a list without making a number of numpy first.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from attrs import frozen

from allocator.kernels.numbers import Numbers
from allocator.machine_code.arrays import compiled
from allocator.problem import Column

P = ParamSpec("P")
R = TypeVar("R")
SMALL = 500
"""The number of chunks from which on compiled kernels run."""


@frozen
class KernelMode:
    """The way in which a kernel runs: plain on lists, or compiled on columns."""

    is_plain: bool

    @classmethod
    def of(cls, chunks: int) -> "KernelMode":
        """Returns the mode for a problem of `chunks` chunks."""
        return cls(chunks < SMALL)

    def kernel(self, plain: Callable[P, R]) -> Callable[P, R]:
        """Returns the kernel to call."""
        return plain if self.is_plain else compiled(plain)

    def numbers(self, *columns: Column) -> tuple[Numbers, ...]:
        """Returns columns as the kernel takes them: as lists, or dense. One that is dense already is not copied."""
        return tuple(c.tolist() if self.is_plain else np.ascontiguousarray(c, np.int64) for c in columns)

    def zeros(self, *counts: int) -> tuple[Numbers, ...]:
        """Returns a column of zeros for each count, for a kernel to write."""
        return tuple([0] * n if self.is_plain else np.zeros(n, np.int64) for n in counts)
