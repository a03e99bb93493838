"""Best-gap placement by a search over time: little memory, whatever meets whom."""

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import BLOCK, DIGITS, Barred, Bodies, Members, SweepTree, place_swept
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem
from allocator.ragged import row_starts
from allocator.solvers.placing.conflicts import by_begin


@frozen(eq=False)
class Sweep:
    """The arguments of `place_swept`."""

    bodies: Bodies
    members: Members
    tree: SweepTree
    barred: Barred
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
        inner, room, by_body = problem.chains.offset[rows], problem.size[rows], np.argsort(body, kind="stable")
        return cls(
            Bodies(*mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])),
            Members(*mode.numbers(begin, end, stop, inner, room, first, by_body)),
            SweepTree(*mode.zeros(len(rows), len(rows), 2 * leaves)),
            Barred(*mode.zeros(most, most, DIGITS)),
            mode,
        )

    def place(self, order: Numbers, limit: int, offset: Numbers, cursor: Numbers, looks: int) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_swept)(
            self.bodies, self.members, order, limit, offset, self.tree, self.barred, cursor, looks
        )
