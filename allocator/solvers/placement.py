"""Best-gap placement: chains one by one, each into the tightest gap between what has been placed before."""

from collections.abc import Iterable

import numpy as np
from attrs import define, frozen

from allocator.chains import Chains, chains
from allocator.problem import FREE, Column, Problem
from allocator.solvers.base import align_up, without_empty


@frozen(eq=False)
class _Member:
    """One chunk of a chain: life in ticks, and the bytes [low, high) that it takes, counted from its root's offset."""

    begin: int
    end: int
    low: int
    high: int


@define(eq=False)
class _Placed:
    """Rows of (begin, end, low, high) of the members that have addresses; only the first `count` rows are in use."""

    rows: Column
    count: int = 0

    def barred(self, member: _Member) -> Column:
        """Columns of ranges (low, high), ends not included, in which the root of `member` must not begin."""
        begin, end, low, high = self.rows[:, : self.count]
        meets = (begin < member.end) & (member.begin < end)
        return np.stack((low[meets] - member.high, high[meets] - member.low))

    def add(self, member: _Member, offset: int) -> None:
        """Places a member whose root lies at `offset`."""
        self.rows[:, self.count] = (member.begin, member.end, offset + member.low, offset + member.high)
        self.count += 1


def place_in_order(problem: Problem, order: Iterable[int]) -> Column:
    """Offset of each chunk, when the chains are placed in this order of their roots; pinned ones come first. O(n^2).

    A chain goes into the gap that leaves least over, the lowest of those, else behind everything that it meets.
    """
    found = chains(problem)
    members = _members(problem, found)
    placed = _Placed(np.empty((4, len(problem)), np.int64))
    offset = np.zeros(len(problem), np.int64)
    for root in sorted(order, key=lambda r: problem.pinned[r] == FREE):
        barred = np.hstack([placed.barred(member) for member in members[root]])
        pinned = int(problem.pinned[root])
        offset[root] = pinned if pinned != FREE else _tightest(barred, int(problem.alignment[root]))
        for member in members[root]:
            placed.add(member, int(offset[root]))
    return without_empty(problem, found.offsets(offset))


def roots(problem: Problem) -> Column:
    """Ids of the chunks to place: those that have bytes and overwrite nothing."""
    is_root = problem.size > 0
    is_root[problem.src] = False
    return np.flatnonzero(is_root)


def _members(problem: Problem, found: Chains) -> dict[int, list[_Member]]:
    columns = (found.root, problem.begin, problem.end, found.offset, problem.size)
    made: dict[int, list[_Member]] = {}
    for root, begin, end, offset, size in zip(*(c.tolist() for c in columns), strict=True):
        if size:
            made.setdefault(root, []).append(_Member(begin, end, offset, offset + size))
    return made


def _tightest(barred: Column, alignment: int) -> int:
    """The offset to take, given the barred ranges: in the smallest gap, or behind the last range."""
    by_low = barred[:, np.argsort(barred[0], kind="stable")]
    floors = np.maximum.accumulate(np.concatenate(([0], by_low[1])))
    starts = -(-floors // alignment) * alignment
    spare = by_low[0] - starts[:-1]
    fits = np.flatnonzero(spare >= 0)
    if len(fits):
        return int(starts[fits[np.argmin(spare[fits])]])
    return align_up(int(floors[-1]), alignment)
