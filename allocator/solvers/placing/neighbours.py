"""Best-gap placement by lists of neighbours: quick for many orders of one problem, and for conflicts."""

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import DIGITS, Barred, Bodies, Line, NeighbourLists, place_near
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

    bodies: Bodies
    lists: NeighbourLists
    line: Line
    barred: Barred
    mode: KernelMode

    @classmethod
    def of(cls, problem: Problem, ids: Column, mode: KernelMode) -> "Neighbours":
        """Takes memory for each pair of chunks that meet."""
        lists = _lists(problem, ids)
        most = int(np.diff(lists[0]).max(initial=0))
        places = len(ids) if len(ids) ** 2 <= DENSE * len(lists[1]) else 0
        return cls(
            Bodies(*mode.numbers(problem.size[ids], problem.alignment[ids], problem.pinned[ids])),
            NeighbourLists(*mode.numbers(*lists)),
            Line(*mode.zeros(len(ids), places, places)),
            Barred(*mode.zeros(2 * most, 2 * most, DIGITS)),
            mode,
        )

    def place(self, order: Numbers, limit: int, offset: Numbers, cursor: Numbers, looks: int) -> int:
        """Runs the kernel."""
        return self.mode.kernel(place_near)(
            self.bodies, self.lists, order, limit, offset, self.line, self.barred, cursor, looks
        )


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
