"""Merges rectangles that are too small or too many to be drawn one by one into runs of equal cells."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ops.tensor.spec import Array

MOST_RUNS = 50_000
"""Cells grow until there are no more runs than that."""
_FAINT = 0.2
"""A cell of which less than this share is covered is not drawn."""

Runs = dict[int, tuple[tuple[float, float, float, float], ...]]


def merge(boxes: Array, kind: Array, frame: tuple[float, float, float, float]) -> Runs:
    """Returns runs of whole cells by kind. `boxes` are rows (x, y, width, height) in the `frame`; lengths in pixels."""
    for cell in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0):
        runs = {k: tuple(cells) for k, cells in _runs(_winners(boxes, kind, frame, cell), frame, cell).items()}
        if sum(map(len, runs.values())) <= MOST_RUNS:
            break
    return runs


def _winners(boxes: Array, kind: Array, frame: tuple[float, float, float, float], cell: float) -> Array:
    """Returns the kind that covers most of each cell, by row and column; -1 where less than _FAINT is covered."""
    x, y, width, height = frame
    rows, columns = int(np.ceil(height / cell)), int(np.ceil(width / cell))
    ranges = (_range(boxes[:, 0] - x, boxes[:, 2], cell, columns), _range(boxes[:, 1] - y, boxes[:, 3], cell, rows))
    winner, best, whole = np.full((rows, columns), -1), np.zeros((rows, columns)), np.zeros((rows, columns))
    for k in np.unique(kind).tolist():
        share = _cover(boxes[kind == k], [(a[kind == k], b[kind == k]) for a, b in ranges], (rows, columns), cell)
        winner[share > best + 1e-9] = k
        best, whole = np.maximum(best, share), whole + share
    winner[whole < _FAINT] = -1
    return winner


def _range(start: Array, length: Array, cell: float, count: int) -> tuple[Array, Array]:
    """Returns for each box the first cell that it meets, and the cell behind the last one."""
    first = np.clip((start / cell).astype(int), 0, count - 1)
    return first, np.clip(np.ceil((start + length) / cell).astype(int), first + 1, count)


def _cover(boxes: Array, ranges: list[tuple[Array, Array]], shape: tuple[int, int], cell: float) -> Array:
    """Returns the share of each cell that the boxes cover; a box is spread evenly over the cells that it meets."""
    (left, right), (top, bottom) = ranges
    share = boxes[:, 2] * boxes[:, 3] / ((right - left) * (bottom - top) * cell * cell)
    corners = np.zeros((shape[0] + 1, shape[1] + 1))
    for rows, columns, sign in ((top, left, 1), (top, right, -1), (bottom, left, -1), (bottom, right, 1)):
        np.add.at(corners, (rows, columns), sign * share)
    whole: Array = corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    return whole


def _runs(
    winner: Array, frame: tuple[float, float, float, float], cell: float
) -> dict[int, list[tuple[float, float, float, float]]]:
    runs = dict[int, list[tuple[float, float, float, float]]]()
    for row, line in enumerate(winner):
        y = frame[1] + row * cell
        high = min(cell, frame[1] + frame[3] - y)
        for k, first, past in _stretches(line):
            x = frame[0] + first * cell
            wide = min((past - first) * cell, frame[0] + frame[2] - x)
            runs.setdefault(k, []).append((x, y, wide, high))
    return runs


def _stretches(line: Array) -> Iterator[tuple[int, int, int]]:
    """Yields (kind, first, past) of each run of equal neighbours."""
    bounds = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
    for first, past in pairwise(bounds):
        if line[first] >= 0:
            yield int(line[first]), first, past
