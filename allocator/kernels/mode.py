"""How kernels run: on lists and plain where the problem is small, else on columns and compiled. Same source and result.

Plain kernels run on lists, because Python reads an element of a list without making a number of numpy first. numba is
loaded once a process, which takes long compared with a small problem: so a strategy that runs its kernel once names a
size up to which it runs plain.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from attrs import frozen

from allocator.compiled import compiled, is_loaded
from allocator.kernels.numbers import Numbers
from allocator.problem import Column

P = ParamSpec("P")
R = TypeVar("R")
SMALL = 500
"""The number of chunks from which on compiled kernels run, if they are loaded. With fewer, plain kernels run."""


@frozen
class KernelMode:
    """The way in which a kernel runs: plain on lists, or compiled on columns."""

    is_plain: bool

    @classmethod
    def of(cls, chunks: int, unloaded: int = SMALL) -> "KernelMode":
        """Returns the mode for a problem of `chunks` chunks. Numba is not loaded for fewer than `unloaded`."""
        return cls(chunks < SMALL or (chunks < unloaded and not is_loaded()))

    def kernel(self, plain: Callable[P, R]) -> Callable[P, R]:
        """Returns the kernel to call."""
        return plain if self.is_plain else compiled(plain)

    def numbers(self, *columns: Column) -> tuple[Numbers, ...]:
        """Returns columns as the kernel takes them."""
        return tuple(c.tolist() for c in columns) if self.is_plain else columns

    def zeros(self, *counts: int) -> tuple[Numbers, ...]:
        """Returns a column of zeros for each count, for a kernel to write."""
        return tuple([0] * n if self.is_plain else np.zeros(n, np.int64) for n in counts)
