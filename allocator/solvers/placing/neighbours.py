"""Best-gap placement by lists of neighbours: quick for many orders of one problem, and for conflicts."""

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import DIGITS, place_near
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem
from allocator.ragged import row_starts
from allocator.solvers.placing.conflicts import conflict_pairs

DENSE = 16
"""A body with more than one in this many bodies as neighbours goes through all bodies by offset; others sort theirs."""


@frozen(eq=False)
class Neighbours:
    """The arguments of `place_near`."""

    start: Numbers
    near: Numbers
    low: Numbers
    high: Numbers
    size: Numbers
    alignment: Numbers
    pinned: Numbers
    mark: Numbers
    line: Numbers
    hits: Numbers
    floors: Numbers
    ceilings: Numbers
    digits: Numbers
    mode: KernelMode

    @classmethod
    def of(cls, problem: Problem, ids: Column, mode: KernelMode) -> "Neighbours":
        """Takes memory for each pair of chunks that meet."""
        lists = _lists(problem, ids)
        most = int(np.diff(lists[0]).max(initial=0))
        start, near, low, high = mode.numbers(*lists)
        size, alignment, pinned = mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])
        places = len(ids) if len(ids) ** 2 <= DENSE * len(near) else 0
        mark, line, hits = mode.zeros(len(ids), places, places)
        floors, ceilings, digits = mode.zeros(2 * most, 2 * most, DIGITS)
        return cls(
            start, near, low, high, size, alignment, pinned, mark, line, hits, floors, ceilings, digits, mode
        )  # fmt: skip

    def place(self, order: Numbers, kept: int, limit: int, offset: Numbers) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_near)(
            self.start, self.near, self.low, self.high, self.size, self.alignment, self.pinned,
            order, kept, limit, offset, self.mark, self.line, self.hits, self.floors, self.ceilings, self.digits,
        )  # fmt: skip


def _lists(problem: Problem, ids: Column) -> tuple[Column, Column, Column, Column]:
    """Returns each pair of chunks that meet, seen from the body of either: the lists of bodies, and what they bar."""
    body = np.zeros(len(problem), np.int64)
    body[ids] = np.arange(len(ids))
    body, low, high = body[problem.chains.root], problem.chains.offset, problem.chains.offset + problem.size
    met = conflict_pairs(problem)
    apart = body[met.one] != body[met.other]
    one = np.concatenate((met.one[apart], met.other[apart]))
    other = np.concatenate((met.other[apart], met.one[apart]))
    order = np.lexsort((body[other], body[one]))
    one, other = one[order], other[order]
    start = row_starts(body[one], len(ids))
    return start, body[other], low[other] - high[one], high[other] - low[one]
