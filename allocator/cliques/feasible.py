"""Where free chunks may lie, beside all pinned chunks that they or others of their chain meet."""

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.cliques.clique import Clique
from allocator.problem import FREE, Column, Conflicts, Problem, column

NO_END = 2**62
"""Last offset of a run that has no end."""
_WORK = 20_000_000
"""The most looks at pinned chunks. Beyond them no offset counts as barred, which is still sound. More looks make
bounds tighter and take longer."""
_ONCE = 10_000
"""The looks that one chunk costs, besides one at each pinned chunk."""


@frozen(eq=False)
class OffsetRanges:
    """Offsets from first[k] to last[k] that are `shift` above multiples of `alignment`; the last run has no end."""

    first: Column
    last: Column
    alignment: int
    shift: int

    def above(self, floor: Column) -> Column:
        """Returns the lowest offset that is not below a floor, for many floors."""
        at = floor + (self.shift - floor) % self.alignment
        return column(np.maximum(at, self.first[np.searchsorted(self.last, at)]))


@define(eq=False)
class FeasibleOffsets:
    """Runs of offsets, found for each chain when they are asked for."""

    _problem: Problem
    _all_chunks: Clique
    _pinned: Column = field(init=False)
    _member: Column = field(init=False)
    _start: Column = field(init=False)
    _near: tuple[Column, Column] = field(init=False)
    _runs: dict[int, OffsetRanges] = field(factory=dict, init=False)
    _work: int = field(default=_WORK, init=False)

    def __attrs_post_init__(self) -> None:
        used, root = self._problem.size > 0, self._all_chunks.root
        self._pinned = np.flatnonzero((self._all_chunks.pinned != FREE) & used)
        self._member = np.argsort(root, kind="stable") if len(self._pinned) else self._pinned
        self._start = np.searchsorted(root[self._member], np.arange(len(root) + 1))
        self._near = self._pairs(self._problem.conflicts or Conflicts())

    def _pairs(self, conflicts: Conflicts) -> tuple[Column, Column]:
        """Returns the pairs (chunk, pinned chunk) that conflict, sorted by chunk."""
        one = np.concatenate((conflicts.one, conflicts.other))
        other = np.concatenate((conflicts.other, conflicts.one))
        kept = (self._all_chunks.pinned[other] != FREE) & (self._problem.size[other] > 0)
        order = np.argsort(one[kept], kind="stable")
        return one[kept][order], other[kept][order]

    def runs(self, chunk: int) -> OffsetRanges:
        """Returns the offsets at which a free chunk may lie."""
        root, shift = int(self._all_chunks.root[chunk]), int(self._all_chunks.shift[chunk])
        if root not in self._runs:
            self._runs[root] = self._found(root)
        of_root = self._runs[root]
        return OffsetRanges(of_root.first + shift, of_root.last + shift, of_root.alignment, shift)

    def narrowed(self, clique: Clique) -> Clique:
        """Returns the same clique; below free chunks there are the bytes below their lowest run."""
        if not len(self._pinned):
            return clique
        head = clique.head.copy()
        for row in np.flatnonzero(clique.pinned == FREE).tolist():
            head[row] = self.runs(int(clique.ids[row])).first[0]
        return evolve(clique, head=head)

    def _found(self, root: int) -> OffsetRanges:
        """Returns the offsets of a root; runs begin and end at multiples of its alignment."""
        low, high = self._barred(root) if self._work > 0 else (self._pinned[:0], self._pinned[:0])
        order = np.argsort(low, kind="stable")
        alignment = int(self._all_chunks.alignment[root])
        floors = np.maximum.accumulate(np.append(0, high[order]))
        first = -(-floors // alignment) * alignment
        last = np.append(low[order] // alignment * alignment, NO_END)
        fits = first <= last
        return OffsetRanges(first[fits], last[fits], alignment, 0)

    def _barred(self, root: int) -> tuple[Column, Column]:
        """Returns the ranges (low, high), ends not included, in which the root must not begin."""
        size, shift = self._all_chunks.size, self._all_chunks.shift
        low, high = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for chunk in self._member[self._start[root] : self._start[root + 1]].tolist():
            rivals = self._rivals(chunk) if size[chunk] else self._pinned[:0]
            low.append(shift[rivals] - shift[chunk] - size[chunk])
            high.append(shift[rivals] - shift[chunk] + size[rivals])
        return np.concatenate(low), np.concatenate(high)

    def _rivals(self, chunk: int) -> Column:
        """Returns the pinned chunks that the chunk may not overlap."""
        problem, pinned = self._problem, self._pinned
        self._work -= _ONCE + len(pinned)
        if problem.conflicts is not None:
            first, last = np.searchsorted(self._near[0], (chunk, chunk + 1))
            return column(self._near[1][first:last])
        meets = (problem.begin[pinned] < problem.end[chunk]) & (problem.begin[chunk] < problem.end[pinned])
        return column(pinned[meets])
