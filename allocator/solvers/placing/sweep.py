"""Best-gap placement by a search over time: little memory, whatever meets whom."""

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import BLOCK, DIGITS, place_swept
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem
from allocator.ragged import row_starts
from allocator.solvers.placing.conflicts import by_begin


@frozen(eq=False)
class Sweep:
    """The arguments of `place_swept`."""

    begin: Numbers
    end: Numbers
    stop: Numbers
    inner: Numbers
    room: Numbers
    first: Numbers
    member: Numbers
    size: Numbers
    alignment: Numbers
    pinned: Numbers
    until: Numbers
    bottom: Numbers
    reach: Numbers
    floors: Numbers
    ceilings: Numbers
    digits: Numbers
    mode: KernelMode

    @classmethod
    def of(cls, problem: Problem, ids: Column, mode: KernelMode) -> "Sweep":
        """Sorts the chunks by time. O(n log n)."""
        rows, stop = by_begin(problem)
        body = np.zeros(len(problem), np.int64)
        body[ids] = np.arange(len(ids))
        body = body[problem.chains.root[rows]]
        begin, end = problem.begin[rows], problem.end[rows]
        first = row_starts(body, len(ids))
        met = stop - np.searchsorted(np.sort(end), begin, "right")
        most = 2 * int(np.bincount(body, met).max(initial=0))
        leaves = 1 << (len(rows) // BLOCK).bit_length()
        begins, ends, stops, inner, room = mode.numbers(
            begin, end, stop, problem.chains.offset[rows], problem.size[rows]
        )
        firsts, member = mode.numbers(first, np.argsort(body, kind="stable"))
        size, alignment, pinned = mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])
        until, bottom, reach = mode.zeros(len(rows), len(rows), 2 * leaves)
        floors, ceilings, digits = mode.zeros(most, most, DIGITS)
        return cls(
            begins, ends, stops, inner, room, firsts, member, size, alignment, pinned,
            until, bottom, reach, floors, ceilings, digits, mode,
        )  # fmt: skip

    def place(self, order: Numbers, kept: int, limit: int, offset: Numbers) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_swept)(
            self.begin, self.end, self.stop, self.inner, self.room, self.first, self.member,
            self.size, self.alignment, self.pinned, order, kept, limit, offset,
            self.until, self.bottom, self.reach, self.floors, self.ceilings, self.digits,
        )  # fmt: skip
