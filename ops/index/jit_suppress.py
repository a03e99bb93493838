"""The door to numba for non-maximum suppression: boxes from the best score down, without those that overlap a better.

Greedy, as ONNX defines it; which sums and products are taken in which order follows onnxruntime
(core/providers/cpu/object_detection/non_max_suppression.cc), so that equal thresholds decide alike.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[..., int]


@cache
def suppress() -> Compiled:
    """Returns f(boxes, scores, (is_centre, has_least), limit, (overlap, least), scratch, order, y).

    It returns how many boxes are chosen. boxes (batch, n, 4), scores (batch, classes, n): dense float32, maybe
    read-only. At most `limit` boxes a class are chosen, those whose score is above `least` (any number, where
    `has_least` is not set) and whose intersection over union with no better one is above `overlap`. Of equal scores the
    first is better. `scratch` are two arrays of float32[n, 5], `order` is one of int64[n]. Rows (batch, class, box) are
    written as far as y (int64[rows, 3]) is long.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only this kernel wants it

    for function in (_corners, _is_free, _is_better, _sink, _candidates, _chosen):
        numba.extending.register_jitable(function)
    array, single = numba.types.Array, numba.float32
    tuples: Any = numba.types.UniTuple
    read = array(single, 3, "C", readonly=True)
    scratch, order, rows = tuples(array(single, 2, "C"), 2), array(numba.int64, 1, "C"), array(numba.int64, 2, "C")
    flags, thresholds = tuples(numba.boolean, 2), tuples(single, 2)
    signature = numba.int64(read, read, flags, numba.int64, thresholds, scratch, order, rows)
    compiled: Compiled = compiled_once(_suppress, signature, error_model="numpy")
    return compiled


def _corners(boxes: Array, is_centre: bool, corners: Array) -> None:
    """Writes the least and the greatest coordinate on each axis, and the area, of each box."""
    for i in range(len(boxes)):
        a, b, c, d = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        if is_centre:
            half, other = c * np.float32(0.5), d * np.float32(0.5)
            a, b, c, d = a - half, b - other, a + half, b + other
        else:
            a, c = (c, a) if a >= c else (a, c)
            b, d = (d, b) if b >= d else (b, d)
        corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3] = a, b, c, d
        corners[i, 4] = (c - a) * (d - b)


def _is_free(corners: Array, i: int, kept: Array, total: int, most: float) -> bool:
    """Returns whether box i shares more than `most` of what both cover with no box that is kept.

    Boxes without an area share nothing.
    """
    top, left, bottom, right, area = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3], corners[i, 4]
    for k in range(total):
        height = min(bottom, kept[k, 2]) - max(top, kept[k, 0])
        width = min(right, kept[k, 3]) - max(left, kept[k, 1])
        if height > 0 and width > 0:
            shared = height * width
            union = area + kept[k, 4] - shared
            if min(shared, area, kept[k, 4], union) > 0 and shared / union > most:
                return False
    return True


def _is_better(scores: Array, a: int, b: int) -> bool:
    return scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


def _sink(scores: Array, heap: Array, parent: int, count: int) -> None:
    """Lets an element of a heap of `count` boxes sink below all that are better."""
    while 2 * parent + 1 < count:
        child = 2 * parent + 1
        if child + 1 < count and _is_better(scores, heap[child + 1], heap[child]):
            child += 1
        if not _is_better(scores, heap[child], heap[parent]):
            return
        heap[child], heap[parent] = heap[parent], heap[child]
        parent = child


def _candidates(scores: Array, has_least: bool, least: float, heap: Array) -> int:
    """Makes a heap, the best on top, of all boxes whose score is high enough (NaN is not); returns their number."""
    count = 0
    for i in range(len(scores)):
        if scores[i] > least if has_least else not np.isnan(scores[i]):
            heap[count] = i
            count += 1
    for parent in range(count // 2 - 1, -1, -1):
        _sink(scores, heap, parent, count)
    return count


def _chosen(  # noqa: PLR0917 - arrays of several types cannot share a tuple
    scores: Array, heap: Array, count: int, limit: int, overlap: float, corners: Array, kept: Array
) -> int:
    """Returns how many boxes are kept: heap[n - 1 - k] becomes box k of them, behind the heap, which shrinks faster."""
    total, last = 0, len(heap) - 1
    while count and total < limit:
        best = heap[0]
        count -= 1
        heap[0] = heap[count]
        _sink(scores, heap, 0, count)
        if _is_free(corners, best, kept, total, overlap):
            for i in range(corners.shape[1]):
                kept[total, i] = corners[best, i]
            heap[last - total] = best
            total += 1
    return total


def _suppress(  # noqa: PLR0917
    boxes: Array,
    scores: Array,
    flags: tuple[bool, bool],
    limit: int,
    thresholds: tuple[float, float],
    scratch: tuple[Array, Array],
    heap: Array,
    y: Array,
) -> int:
    corners, kept = scratch
    total, last = 0, len(heap) - 1
    for b in range(scores.shape[0]):
        _corners(boxes[b], flags[0], corners)
        for c in range(scores.shape[1]):
            count = _candidates(scores[b, c], flags[1], thresholds[1], heap)
            total_of_class = _chosen(scores[b, c], heap, count, limit, thresholds[0], corners, kept)
            for k in range(min(total_of_class, len(y) - total)):
                y[total + k, 0], y[total + k, 1], y[total + k, 2] = b, c, heap[last - k]
            total += total_of_class
    return total
