"""The bytes of a value by who wrote them: sorted pieces, none of which meet."""

from bisect import bisect_left
from collections.abc import Iterable

from engine.check.runs import Run

Piece = tuple[int, int, int]
"""First byte, end, and the value that was written there."""


def cut(pieces: list[Piece], low: int, high: int) -> list[Piece]:
    """The pieces that share a byte with [low, high), cut to it, in order."""
    found = pieces[max(bisect_left(pieces, (low + 1,)) - 1, 0) : bisect_left(pieces, (high,))]
    if found and found[0][1] <= low:
        del found[0]
    if found:
        start, end, name = found[0]
        found[0] = max(start, low), end, name
        start, end, name = found[-1]
        found[-1] = start, min(end, high), name
    return found


def cut_all(pieces: list[Piece], runs: Iterable[Run]) -> list[Piece]:
    """The pieces that share a byte with one of the runs, cut to them."""
    return [piece for low, high in runs for piece in cut(pieces, low, high)]
