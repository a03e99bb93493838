"""Ranges of bytes: the runs that a layout touches, and sorted pieces by their writer; nothing that plans uses this."""

import numpy as np
import numpy.typing as npt

from ops.tensor.layout import Layout

Runs = npt.NDArray[np.int64]
"""Half-open ranges in order, no two with a byte in common: a row of first bytes and a row of ends."""
Pieces = npt.NDArray[np.int64]
"""Runs, and as a third row the value that was written to each."""
MOST_RUNS = 4096
"""The most runs of one layout; beyond it, the extent of the layout stands for them."""

NO_RUNS: Runs = np.empty((2, 0), np.int64)


def runs_of(layout: Layout) -> Runs:
    """Returns the longest runs of bytes; the whole extent where they are too many or overlap."""
    low, high = layout.extent
    extent = np.array([[low], [high]]) if low < high else NO_RUNS
    if layout.is_dense or low == high:
        return extent
    steps = sorted((abs(s), n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1 and s)
    length = layout.itemsize
    while steps and steps[0][0] == length:
        length *= steps.pop(0)[1]
    count = 1
    for _, n in steps:
        count *= n
    if count > MOST_RUNS:
        return extent
    starts = np.array([low], np.int64)
    for step, n in steps:
        starts = np.add.outer(starts, np.arange(0, step * n, step)).reshape(-1)
    starts.sort()
    return np.array([starts, starts + length]) if (np.diff(starts) >= length).all() else extent


def merged(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> Runs:
    """Returns ranges [low, high) as a row of first bytes and a row of ends: in order, those that meet as one.

    Ranges of no bytes are left out.
    """
    order = np.argsort(low, kind="stable")
    order = order[low[order] < high[order]]
    first, end = low[order], np.maximum.accumulate(high[order])
    begins = np.ones(len(order), bool)
    begins[1:] = first[1:] > end[:-1]
    return np.array([first[begins], end[np.append(begins[1:], True)[: len(order)]]])


def meet(some: Runs, others: Runs) -> bool:
    """Returns whether a byte is in runs of both."""
    lows, highs = others
    at = np.searchsorted(highs, some[0], "right")  # the first of the others that ends behind the first byte
    within = at < len(highs)
    return bool((lows[at[within]] < some[1, within]).any())


def written(runs: Runs, value: int) -> Pieces:
    """Returns the runs as pieces that one value was written to."""
    return np.vstack((runs, np.full(runs.shape[1], value)))


def cut(pieces: Pieces, runs: Runs) -> Pieces:
    """Returns the pieces that share a byte with one of the runs, cut to it."""
    first = np.searchsorted(pieces[1], runs[0], "right")
    counts = np.searchsorted(pieces[0], runs[1], "left") - first
    which = np.repeat(np.arange(runs.shape[1]), counts)
    begins = np.cumsum(counts) - counts
    selected = pieces[:, np.arange(len(which)) + (first - begins)[which]]
    np.maximum(selected[0], runs[0, which], out=selected[0])
    np.minimum(selected[1], runs[1, which], out=selected[1])
    return selected


def united(pieces: Pieces) -> Pieces:
    """Returns the same bytes with one piece for all of a value that follow each other without a gap."""
    lows, highs, values = pieces
    begins = np.ones(len(lows), bool)
    begins[1:] = (lows[1:] != highs[:-1]) | (values[1:] != values[:-1])
    return np.array([lows[begins], highs[np.append(begins[1:], True)[: len(lows)]], values[begins]])
