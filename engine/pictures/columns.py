"""What a picture needs of a run at each of its columns: a tick, or a pixel where ticks are finer than that."""

from itertools import pairwise

import numpy as np

from ops.tensor.spec import Array


def column_edges(last: float, pixels: int, timed: bool) -> Array:
    """From 0 to `last`, one more than there are columns."""
    whole = not timed and last <= pixels
    return np.arange(last + 1) if whole else np.linspace(0, last, pixels + 1)


def skyline(edges: Array, begin: Array, end: Array, top: Array) -> Array:
    """By column: the highest `top` of what is there in it, for however short."""
    first = np.searchsorted(edges, begin, side="right") - 1
    past = np.searchsorted(edges, end, side="left")
    highest = np.zeros(len(edges) - 1)
    for i in np.argsort(top, kind="stable").tolist():
        highest[first[i] : past[i]] = top[i]
    return highest


def most(edges: Array, times: Array, values: Array) -> Array:
    """By column: the most of a value that holds from its time until the next one. Times ascend."""
    count = len(edges) - 1
    before = np.searchsorted(times, edges[:-1], side="right") - 1
    carried = np.where(before >= 0, values[np.maximum(before, 0)] if len(values) else 0, 0).astype(float)
    column = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, count - 1)
    np.maximum.at(carried, column, values)
    return carried


def stairs(edges: Array, values: Array) -> list[tuple[float, float]]:
    """Corners of a line that has a value in each column; those on a straight part are left out."""
    changes = np.flatnonzero(np.diff(values)) + 1
    starts = [0, *changes.tolist(), len(values)]
    corners = list[tuple[float, float]]()
    for first, past in pairwise(starts):
        corners += [(float(edges[first]), float(values[first])), (float(edges[past]), float(values[first]))]
    return corners


def ranked(kinds: tuple[str, ...], weight: Array) -> list[str]:
    """Kinds by their total weight, the heaviest first."""
    names, place = np.unique(np.array(kinds, dtype=object).astype(str), return_inverse=True)
    total = np.bincount(place, weights=weight, minlength=len(names))
    return [str(names[i]) for i in np.lexsort((np.arange(len(names)), -total))]
