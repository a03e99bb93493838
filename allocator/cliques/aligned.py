"""Lower bounds of a clique from alignment, and from bytes that must lie below or above each chunk."""

from collections.abc import Iterator
from math import gcd

import numpy as np
from attrs import frozen

from allocator.cliques.clique import Clique
from allocator.problem import FREE, Column

_MOST_CELLS = 12
_MOST_TAILS = 8


@frozen(eq=False)
class _Window:
    """Some of a clique: none of them begins below `low`, and `above` bytes lie above each of them."""

    clique: Clique
    low: int
    above: int


def bytes_in_cells(clique: Clique, proved: int = 0) -> int:
    """No arena that holds the clique is smaller; what cannot be more than `proved` need not be found."""
    tried = (1, *cells(clique))
    for window in _windows(clique):
        most = window.low + int(window.clique.size.sum()) + int(window.clique.tail.max())
        for cell in tried:
            if most + len(window.clique) * (cell - 1) > proved:
                proved = max(proved, _bytes_needed(window, cell))
    return proved


def cells(clique: Clique) -> tuple[int, ...]:
    """Sizes of cells worth a try: alignments, and what those have in common with the sizes of the less aligned rest."""
    kinds: list[int] = np.unique(clique.alignment[clique.pinned == FREE]).tolist()
    candidates = {gcd(*kinds)}
    for kind in kinds:
        rest = clique.size[clique.alignment % kind != 0]
        candidates |= {kind, gcd(kind, *np.unique(rest).tolist())}
    return tuple(sorted(candidates - {0, 1}, reverse=True)[:_MOST_CELLS])


def _windows(clique: Clique) -> Iterator[_Window]:
    """All, and of those with long tails those with long heads who need most (Carlier 1982: heads, bodies and tails)."""
    lowest, tails = int(clique.head.min()), np.unique(clique.tail)
    yield _Window(clique, lowest, int(tails[0]))
    for above in tails[::-1][:_MOST_TAILS].tolist():
        rows = np.flatnonzero(clique.tail >= above)
        rows = rows[np.argsort(-clique.head[rows], kind="stable")]
        last = int(np.argmax(clique.head[rows] + np.cumsum(clique.size[rows])))
        if last + 1 < len(clique):
            yield _Window(clique.some(rows[: last + 1]), int(clique.head[rows[last]]), above)


def _bytes_needed(window: _Window, cell: int) -> int:
    """What the window needs, if all that is known of where a chunk begins is known modulo `cell`.

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
    """The fewest bytes between chunks, and above the topmost: their places on a circle of `cell` are known.

    Below the beginning of each chunk there is the end of another, or the floor. For each chunk that may be topmost, the
    others and the floor are matched with the beginnings, which is no longer than the best order: how often a matching
    on a circle must go round past place 0 tells its length; and that is told by where most ends are lacking.
    """
    below = np.sort(begin)
    ends = np.sort(np.append(end, floor % cell))
    lacking = np.searchsorted(below, below, "right") - np.searchsorted(ends, below, "right")
    behind = np.append(np.maximum.accumulate(lacking[::-1])[::-1] + 1, 0)
    before = np.append(0, np.maximum.accumulate(lacking))
    first = np.searchsorted(below, end, "left")
    rounds = np.maximum(np.maximum(before[first], behind[first]), 0)
    return int((end + cell * rounds + above).min() + below.sum() - ends.sum())
