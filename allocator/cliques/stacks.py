"""What a small clique needs exactly: the best of all orders in which its chunks can lie on each other."""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from attrs import frozen

from allocator.cliques.clique import Clique
from allocator.cliques.feasible import FeasibleOffsets, OffsetRanges
from allocator.problem import FREE, Column

MOST_FREE = 12
"""Free chunks of a clique; of more there are too many sets (see `allocator.cliques.orders`)."""
_MOST_TRIALS = 24
"""Capacities that are tried for one clique."""
_NEVER = 2**61
"""A top that no stack has."""


@frozen(eq=False)
class _FreeChunk:
    """A chunk that is free."""

    size: int
    tail: int
    runs: OffsetRanges

    def top(self, floor: Column) -> Column:
        """Returns the end of the chunk if it lies as low as possible on each of many floors."""
        return self.runs.above(floor) + self.size


def bytes_in_stacks(clique: Clique, feasible: FeasibleOffsets, proved: int) -> int:
    """Returns the bytes that every arena with the clique's free chunks has, or `proved` if that is more.

    Where some quick order needs no more than `proved`, nothing is left to prove. Where there are tails, capacities
    between `proved` and that of the quick order are tried.
    """
    rows = np.flatnonzero(clique.pinned == FREE).tolist()
    if not 0 < len(rows) <= MOST_FREE:
        return proved
    pieces = [_FreeChunk(int(clique.size[r]), int(clique.tail[r]), feasible.runs(int(clique.ids[r]))) for r in rows]
    high = _quick_look(pieces)
    if high <= proved:
        return proved
    least = min(p.tail for p in pieces)
    if all(p.tail == least for p in pieces):
        return max(_lowest_top(pieces, _NEVER) + least, proved)
    low = tried = proved
    for _ in range(_MOST_TRIALS):
        if _lowest_top(pieces, tried) < _NEVER:
            high = tried
        else:
            low = tried + 1
        if low >= high:
            break
        tried = (low + high) // 2
    return low


def _lowest_top(pieces: Sequence[_FreeChunk], capacity: int) -> int:
    """Returns the top of the lowest stack in which each chunk's tail fits within the capacity; _NEVER if none does.

    The lowest top of each set of chunks is that of the set without one of them, with that one upon it (Held and Karp
    1962): no chunk gains by a higher floor.
    """
    top = np.full(1 << len(pieces), _NEVER)
    top[0] = 0
    for k, sets in _steps(len(pieces)):
        tops = pieces[k].top(top[sets ^ (1 << k)])
        top[sets] = np.minimum(top[sets], np.where(tops <= capacity - pieces[k].tail, tops, _NEVER))
    return int(top[-1])


@cache
def _steps(count: int) -> tuple[tuple[int, Column], ...]:
    """Returns pairs (k, sets with k in them), smaller sets first."""
    sets = np.arange(1 << count)
    has = [(sets >> k & 1).astype(bool) for k in range(count)]
    sizes = np.sum(has, axis=0)
    return tuple((k, np.flatnonzero(has[k] & (sizes == size))) for size in range(1, count + 1) for k in range(count))


def _quick_look(pieces: Sequence[_FreeChunk]) -> int:
    """Returns the smallest arena of two sorted orders, which is never below that of the best order."""
    orders = (
        sorted(pieces, key=lambda p: (-p.tail, p.runs.first[0], -p.size % p.runs.alignment, -p.runs.alignment)),
        sorted(pieces, key=lambda p: (p.runs.last[0], -p.size, -p.size % p.runs.alignment)),
    )
    return min(_arena(order) for order in orders)


def _arena(order: Iterable[_FreeChunk]) -> int:
    top, arena = np.zeros(1, np.int64), 0
    for piece in order:
        top = piece.top(top)
        arena = max(arena, int(top[0]) + piece.tail)
    return arena
