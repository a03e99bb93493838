"""The bytes of a value by who wrote them: sorted pieces, none of which meet."""

from bisect import bisect_left
from collections.abc import Sequence

from engine.check.runs import Run

Piece = tuple[int, int, int]
"""First byte, end, and the value that was written there."""


def cut(pieces: list[Piece], low: int, high: int) -> list[Piece]:
    """Returns the pieces that share a byte with [low, high), cut to it, in order."""
    selected = pieces[max(bisect_left(pieces, (low + 1,)) - 1, 0) : bisect_left(pieces, (high,))]
    if selected and selected[0][1] <= low:
        del selected[0]
    if selected:
        start, end, name = selected[0]
        selected[0] = max(start, low), end, name
        start, end, name = selected[-1]
        selected[-1] = start, min(end, high), name
    return selected


def cut_all(pieces: list[Piece], runs: Sequence[Run]) -> list[Piece]:
    """Returns the pieces that share a byte with one of the sorted runs, cut to them: one walk over both."""
    selected, at, count = list[Piece](), 0, len(pieces)
    if runs:
        at = max(bisect_left(pieces, (runs[0][0] + 1,)) - 1, 0)
    for low, high in runs:
        while at < count and pieces[at][1] <= low:
            at += 1
        while at < count and pieces[at][0] < high:
            start, end, name = pieces[at]
            selected.append(pieces[at] if low <= start and end <= high else (max(start, low), min(end, high), name))
            if end > high:
                break
            at += 1
    return selected
