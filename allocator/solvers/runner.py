"""How kernels run: on lists and plain where the problem is small, else on columns and compiled. Same source and result.

Below SMALL chunks plain kernels are done before numba is loaded; and they are quicker on lists than on columns.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from attrs import frozen

from allocator.compiled import compiled
from allocator.kernels.numbers import Numbers
from allocator.problem import Column

P = ParamSpec("P")
R = TypeVar("R")
SMALL = 500


@frozen
class Runner:
    """One of the two ways."""

    is_plain: bool

    @classmethod
    def of(cls, chunks: int) -> "Runner":
        """The way that suits a problem of so many chunks."""
        return cls(chunks < SMALL)

    def kernel(self, plain: Callable[P, R]) -> Callable[P, R]:
        """The kernel to call."""
        return plain if self.is_plain else compiled(plain)

    def numbers(self, *columns: Column) -> tuple[Numbers, ...]:
        """Columns as the kernel takes them."""
        return tuple(c.tolist() for c in columns) if self.is_plain else columns

    def zeros(self, *counts: int) -> tuple[Numbers, ...]:
        """So many zeros each, to be written by a kernel."""
        return tuple([0] * n if self.is_plain else np.zeros(n, np.int64) for n in counts)
