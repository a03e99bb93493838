"""Best-gap placement by the bytes in use over time: for large cliques of chunks that live long."""

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import DIGITS, place_covered
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem
from allocator.ragged import row_starts


@frozen(eq=False)
class Covers:
    """The arguments of `place_covered`. Takes memory for n log n ranges at worst; mostly much less is touched."""

    since: Numbers
    until: Numbers
    inner: Numbers
    room: Numbers
    first: Numbers
    member: Numbers
    size: Numbers
    alignment: Numbers
    pinned: Numbers
    leaves: int
    nodes: Numbers
    bottom: Numbers
    top: Numbers
    behind: Numbers
    floors: Numbers
    ceilings: Numbers
    digits: Numbers
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
        sinces, untils, inner, room = mode.numbers(since, until, problem.chains.offset[rows], problem.size[rows])
        firsts, member = mode.numbers(first, np.arange(len(rows)))
        size, alignment, pinned = mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])
        nodes, bottom, top, behind = mode.zeros(4 * leaves.bit_length(), *[4 * leaves + most] * 3)
        floors, ceilings, digits = mode.zeros(2 * most, 2 * most, DIGITS)
        return cls(
            sinces, untils, inner, room, firsts, member, size, alignment, pinned,
            leaves, nodes, bottom, top, behind, floors, ceilings, digits, mode,
        )  # fmt: skip

    def place(self, order: Numbers, kept: int, limit: int, offset: Numbers) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_covered)(
            self.since, self.until, self.inner, self.room, self.first, self.member,
            self.size, self.alignment, self.pinned, order, kept, limit, offset,
            self.leaves, self.nodes, self.bottom, self.top, self.behind, self.floors, self.ceilings, self.digits,
        )  # fmt: skip


def _most_ranges(leaves: int, lengths: Column) -> int:
    """Returns an upper bound of the ranges in all lists: two of each size and two a level for each lifetime."""
    sizes = int(np.frexp(lengths.astype(float))[1].sum())
    return 2 * leaves.bit_length() * len(lengths) + 4 * sizes
