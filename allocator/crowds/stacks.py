"""What a small crowd needs exactly: the best of all orders in which its chunks can lie on each other."""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from attrs import frozen

from allocator.crowds.crowds import Crowd
from allocator.crowds.freedom import Freedom, Runs
from allocator.problem import FREE, Column, column

_MOST_CHUNKS = 12
"""Free chunks of a crowd; of more there are too many sets."""
_MOST_HALVES = 12
"""Capacities that are tried for one crowd."""
_NEVER = 2**61
"""A top that no stack has."""


@frozen(eq=False)
class _Piece:
    """A chunk whose offsets are `shift` above a multiple of `alignment`, and in runs [first[k], last[k]]."""

    size: int
    alignment: int
    shift: int
    tail: int
    first: Column
    last: Column

    def top(self, floor: Column) -> Column:
        """Its end, if it lies as low as it can upon each of many floors."""
        at = floor + (self.shift - floor) % self.alignment
        return column(np.maximum(at, self.first[np.searchsorted(self.last, at)]) + self.size)


def bytes_in_stacks(crowd: Crowd, freedom: Freedom, proved: int) -> int:
    """No arena that holds the free chunks of a crowd is smaller, or none is smaller than `proved`, if that is more.

    Where a quick look finds an order that needs no more, nothing is to be proved. Where there are tails, capacities
    between what is known and what the quick look needs are tried.
    """
    rows = np.flatnonzero(crowd.pinned == FREE).tolist()
    if not 0 < len(rows) <= _MOST_CHUNKS:
        return proved
    pieces = [_piece(crowd, row, freedom.runs(int(crowd.ids[row]))) for row in rows]
    high = _quick_look(pieces)
    if high <= proved:
        return proved
    low = max(_lowest_top(pieces, _NEVER) + min(p.tail for p in pieces), proved)
    for _ in range(_MOST_HALVES if any(p.tail for p in pieces) else 0):
        middle = (low + high) // 2
        if low >= high or _lowest_top(pieces, middle) < _NEVER:
            high = middle
        else:
            low = middle + 1
    return low


def _lowest_top(pieces: Sequence[_Piece], capacity: int) -> int:
    """The top of the lowest stack, if each chunk has its tail above it within the capacity; _NEVER if there is none.

    The lowest top of each set of chunks is that of the set without one of them, with that one upon it (Held and Karp
    1962): to lie higher helps nobody.
    """
    top = np.full(1 << len(pieces), _NEVER)
    top[0] = 0
    for k, sets in _steps(len(pieces)):
        found = pieces[k].top(top[sets ^ (1 << k)])
        top[sets] = np.minimum(top[sets], np.where(found <= capacity - pieces[k].tail, found, _NEVER))
    return int(top[-1])


def _piece(crowd: Crowd, row: int, runs: Runs) -> _Piece:
    size, alignment, shift, tail = (int(c[row]) for c in (crowd.size, crowd.alignment, crowd.shift, crowd.tail))
    first, last = zip(*runs, strict=True)
    return _Piece(size, alignment, shift, tail, np.array(first), np.array(last))


@cache
def _steps(count: int) -> tuple[tuple[int, Column], ...]:
    """(k, sets with k in them), smaller sets first."""
    sets = np.arange(1 << count)
    has = [(sets >> k & 1).astype(bool) for k in range(count)]
    sizes = np.sum(has, axis=0)
    return tuple((k, np.flatnonzero(has[k] & (sizes == size))) for size in range(1, count + 1) for k in range(count))


def _quick_look(pieces: Sequence[_Piece]) -> int:
    """The smallest arena of some orders: never below that of the best."""
    orders = (
        sorted(pieces, key=lambda p: (-p.tail, p.first[0], -p.size % p.alignment, -p.alignment)),
        sorted(pieces, key=lambda p: (p.last[0], -p.size, -p.size % p.alignment)),
    )
    return min(_arena(order) for order in orders)


def _arena(order: Iterable[_Piece]) -> int:
    top, arena = np.zeros(1, np.int64), 0
    for piece in order:
        top = piece.top(top)
        arena = max(arena, int(top[0]) + piece.tail)
    return arena
