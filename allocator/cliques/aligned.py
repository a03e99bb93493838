"""Lower bounds of a clique from alignment, and from bytes that must lie below or above each chunk."""

from collections.abc import Iterator
from math import gcd

import numpy as np
from attrs import frozen

from allocator.cliques.clique import Clique
from allocator.problem import FREE, Column, distinct

_MOST_CELLS = 12
_MOST_TAILS = 8


@frozen(eq=False)
class _Window:
    """Some of a clique: none of them begins below `low`, and `above` bytes lie above each of them."""

    clique: Clique
    low: int
    above: int


def bytes_in_cells(clique: Clique, proved: int = 0) -> int:
    """Returns the bytes that every arena with the clique has, or `proved` where that is not less."""
    tried = (1, *cells(clique))
    for window in _windows(clique):
        most = window.low + int(window.clique.size.sum()) + int(window.clique.tail.max())
        for cell in tried:
            if most + len(window.clique) * (cell - 1) > proved:
                proved = max(proved, _bytes_needed(window, cell))
    return proved


def counted(clique: Clique, cell: int) -> tuple[Column, int, bool]:
    """Returns how many cells each chunk has, the most bytes that one leaves of its last cell, and if some are loose.

    A chunk that begins at the edge of a cell has all cells that it touches; any other is loose and has as many as its
    bytes would fill.
    """
    is_at_edge = (clique.alignment % cell == 0) & (clique.shift % cell == 0)
    count = np.where(is_at_edge, -(-clique.size // cell), clique.size // cell)
    return count, int((count * cell - clique.size)[is_at_edge].max(initial=0)), not is_at_edge.all()


def whole_cells(clique: Clique, cell: int) -> int:
    """Returns the bytes of the clique counted in cells, without the unused bytes of the topmost chunk."""
    count, unused, _ = counted(clique, cell)
    return int(count.sum()) * cell - unused


def cells(clique: Clique) -> tuple[int, ...]:
    """Returns the cell sizes to try: alignments, and their common divisors with sizes of less aligned chunks."""
    kinds: list[int] = distinct(clique.alignment[clique.pinned == FREE]).tolist()
    candidates = {gcd(*kinds)}
    for kind in kinds:
        rest = clique.size[clique.alignment % kind != 0]
        candidates |= {kind, gcd(kind, *distinct(rest).tolist())}
    return tuple(sorted(candidates - {0, 1}, reverse=True)[:_MOST_CELLS])


def _windows(clique: Clique) -> Iterator[_Window]:
    """Yields the whole clique, and chunks with long heads and long tails that need most (Carlier 1982)."""
    lowest, tails = int(clique.head.min()), distinct(clique.tail)
    yield _Window(clique, lowest, int(tails[0]))
    for above in tails[::-1][:_MOST_TAILS].tolist():
        rows = np.flatnonzero(clique.tail >= above)
        rows = rows[np.argsort(-clique.head[rows], kind="stable")]
        last = int(np.argmax(clique.head[rows] + np.cumsum(clique.size[rows])))
        if last + 1 < len(clique):
            yield _Window(clique.some(rows[: last + 1]), int(clique.head[rows[last]]), above)


def _bytes_needed(window: _Window, cell: int) -> int:
    """Returns the bytes that the window needs if only the residues modulo `cell` of the chunks' offsets count.

    Where that is known of some chunks, from the end of one of them to the beginning of the next there are as many bytes
    as the places modulo `cell` tell, and whole cells more for chunks between them, of whose bytes those that fill whole
    cells count.
    """
    clique = window.clique
    is_known = clique.alignment % cell == 0
    if not is_known.any():
        return 0
    size, begin = clique.size[is_known], clique.shift[is_known] % cell
    above = clique.tail[is_known] if is_known.all() else np.full_like(size, window.above)
    between = int((clique.size[~is_known] // cell).sum()) * cell
    return window.low + int(size.sum()) + between + _least_waste(begin, (begin + size) % cell, above, window.low, cell)


def _least_waste(begin: Column, end: Column, above: Column, floor: int, cell: int) -> int:
    """Returns the fewest bytes between chunks and above the topmost, where offsets are known modulo `cell`.

    Below the beginning of each chunk there is the end of another, or the floor. For each chunk that may be topmost, the
    others and the floor are matched with the beginnings, which is no longer than the best order: how often a matching
    on a circle goes round past place 0 gives its length; that number follows from where most ends are lacking.
    """
    below = np.sort(begin)
    ends = np.sort(np.append(end, floor % cell))
    lacking = np.searchsorted(below, below, "right") - np.searchsorted(ends, below, "right")
    behind = np.append(np.maximum.accumulate(lacking[::-1])[::-1] + 1, 0)
    before = np.append(0, np.maximum.accumulate(lacking))
    first = np.searchsorted(below, end, "left")
    rounds = np.maximum(np.maximum(before[first], behind[first]), 0)
    return int((end + cell * rounds + above).min() + below.sum() - ends.sum())
