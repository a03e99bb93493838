"""Ranges of bytes: the runs that a layout touches, and sorted pieces by their writer; nothing that plans uses this."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise, product

from ops.tensor.layout import Layout

Run = tuple[int, int]
"""Half-open."""
MOST_RUNS = 4096
"""The most runs of one layout; beyond it, the extent of the layout stands for them."""
Piece = tuple[int, int, int]
"""First byte, end, and the value that was written there."""


def runs_of(layout: Layout) -> tuple[Run, ...]:
    """Returns the longest runs of bytes, in order; the whole extent where they are too many or overlap."""
    low, high = layout.extent
    if layout.is_dense or low == high:
        return ((low, high),) if low < high else ()
    steps = sorted((abs(s), n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1 and s)
    length = layout.itemsize
    while steps and steps[0][0] == length:
        length *= steps.pop(0)[1]
    count = 1
    for _, n in steps:
        count *= n
    if count > MOST_RUNS:
        return ((low, high),)
    starts = sorted(low + sum(at) for at in product(*(range(0, s * n, s) for s, n in steps)))
    apart = all(b - a >= length for a, b in pairwise(starts))
    return tuple((a, a + length) for a in starts) if apart else ((low, high),)


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
