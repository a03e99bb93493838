"""Best-gap placement by the bytes in use over time: for large cliques of chunks that live long."""

import numpy as np
from attrs import frozen

from allocator.kernels.covers import Covering, RangeTree, place_covered
from allocator.kernels.gaps import DIGITS, Barred, Bodies
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem
from allocator.ragged import row_starts


@frozen(eq=False)
class Covers:
    """The arguments of `place_covered`. Takes memory for n log n ranges at worst; mostly much less is touched."""

    bodies: Bodies
    members: Covering
    leaves: int
    tree: RangeTree
    barred: Barred
    mode: KernelMode

    @classmethod
    def of(cls, problem: Problem, ids: Column, mode: KernelMode) -> "Covers":
        """Builds the tree.

        Its leaves are the ticks in which something begins: two chunks that conflict do so in one of them.
        """
        body = np.full(len(problem), -1)
        body[ids] = np.arange(len(ids))
        rows = np.flatnonzero(problem.size > 0)
        rows = rows[np.argsort(body[problem.chains.root[rows]], kind="stable")]
        first = row_starts(body[problem.chains.root[rows]], len(ids))
        ticks, since = np.unique(problem.begin[rows], return_inverse=True)
        until = np.searchsorted(ticks, problem.end[rows])
        leaves = 1 << max(len(ticks) - 1, 0).bit_length()
        most = _most_ranges(leaves, until - since)
        return cls(
            Bodies(*mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])),
            Covering(*mode.numbers(since, until, problem.chains.offset[rows], problem.size[rows], first)),
            leaves,
            RangeTree(*mode.zeros(4 * leaves.bit_length(), *[4 * leaves + most] * 3)),
            Barred(*mode.zeros(2 * most, 2 * most, DIGITS)),
            mode,
        )

    def place(self, order: Numbers, limit: int, offset: Numbers, cursor: Numbers, looks: int) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_covered)(
            self.bodies, self.members, order, limit, offset, self.leaves, self.tree, self.barred, cursor, looks
        )


def _most_ranges(leaves: int, lengths: Column) -> int:
    """Returns an upper bound of the ranges in all lists: two of each size and two a level for each lifetime."""
    sizes = int(np.frexp(lengths.astype(float))[1].sum())
    return 2 * leaves.bit_length() * len(lengths) + 4 * sizes
