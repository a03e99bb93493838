"""Boxes from the best score down, without those that overlap a better. Imports numba: a door loads it.

Greedy, as ONNX defines it; which sums and products are taken in which order follows onnxruntime
(core/providers/cpu/object_detection/non_max_suppression.cc), so that equal thresholds decide alike.
"""

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable, longs
from ops.index.args import SUPPRESS
from ops.native.memory import floats, record_at
from ops.tensor.spec import Array


@jitable
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


@jitable
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


@jitable
def _is_better(scores: Array, a: int, b: int) -> bool:
    return scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


@jitable
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


@jitable
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


@jitable
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


@jitable
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


@entry(CALL, fastmath=EXACT)
def suppress(address: int) -> int:
    """Writes the boxes that are chosen, and returns how many; the arguments are a SUPPRESS record."""
    args = record_at(address, SUPPRESS)
    n, images, classes = args.boxes_of_image, args.images, args.classes
    boxes = array_at(args.boxes, (images, n, 4), np.float32)
    scores = array_at(args.scores, (images, classes, n), np.float32)
    scratch = array_at(args.corners, (n, 5), np.float32), array_at(args.kept, (n, 5), np.float32)
    thresholds = floats(args.thresholds, 2)
    flags, limits = (args.is_centre != 0, args.has_least != 0), (thresholds[0], thresholds[1])
    y = array_at(args.y, (args.rows, 3), np.int64)
    total: int = _suppress(boxes, scores, flags, args.limit, limits, scratch, longs(args.order, n), y)
    return total
