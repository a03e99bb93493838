"""Non-maximum suppression in numpy: a box that is chosen drops all later ones that overlap it, in one pass over them.

The order of sums and products is that of `ops.index.suppress_code`, so that equal thresholds decide alike.
"""

from collections.abc import Sequence

import numpy as np

from ops.common.indices import INT64
from ops.index.sorting import Order
from ops.schema.schema import Specs
from ops.tensor.spec import BOOL, Array, TensorSpec

_SINGLE = np.dtype("float32")
_TOP, _LEFT, _BOTTOM, _RIGHT, _AREA = range(5)


def _order(boxes: int) -> Order:
    return Order(1, boxes, 1, _SINGLE)


def suppression_specs(boxes: int) -> Specs:
    """Returns the specs of the temporaries for so many boxes of an image.

    They are corners and areas, the same in order, three numbers and three masks a box, the boxes chosen, and what the
    sort needs.
    """
    corners, masks, chosen = TensorSpec((5, boxes), _SINGLE), TensorSpec((3, boxes), BOOL), TensorSpec((boxes,), INT64)
    return corners, corners, corners.with_shape((3, boxes)), masks, chosen, *_order(boxes).specs


class Suppression:
    """Chooses boxes of one image, in temporaries of `suppression_specs`."""

    def __init__(self, boxes: int, temporaries: Sequence[Array]) -> None:
        self._corners, self._sorted, self._numbers, self._marks, self._chosen, *scratch = temporaries
        self._scores = self._numbers[0]
        order = _order(boxes)
        self._steps, _, places = order.sort(self._scores.reshape(1, -1, 1), scratch, descending=True)
        self._places = places[0]

    def set_boxes(self, boxes: Array, is_centre: bool) -> None:
        """Takes least and greatest coordinate on each axis, and the area, of boxes (n, 4)."""
        top, left, bottom, right, area = self._corners
        a, b, c, d = boxes.T
        width, height = self._numbers[:2]
        if is_centre:
            np.multiply(c, np.float32(0.5), height)
            np.multiply(d, np.float32(0.5), width)
            np.subtract(a, height, top)
            np.subtract(b, width, left)
            np.add(a, height, bottom)
            np.add(b, width, right)
        else:
            np.minimum(a, c, out=top)
            np.minimum(b, d, out=left)
            np.maximum(a, c, out=bottom)
            np.maximum(b, d, out=right)
        np.subtract(bottom, top, height)
        np.subtract(right, left, width)
        np.multiply(height, width, area)

    def choose(self, scores: Array, least: np.float32 | None, limit: int, overlap: np.float32) -> Array:
        """Returns the boxes of one class that are chosen, the best first: at most `limit`, scores above `least`."""
        np.copyto(self._scores, scores)
        for step in self._steps:
            step()
        np.take(scores, self._places, out=self._scores, mode="clip")
        np.take(self._corners, self._places, axis=1, out=self._sorted, mode="clip")
        free = self._marks[0]
        if least is None:
            np.equal(self._scores, self._scores, free)
        else:
            np.greater(self._scores, least, free)
        total, start = 0, 0
        while total < limit and start < len(free):
            start += int(free[start:].argmax())
            if not free[start]:
                break
            self._chosen[total] = self._places[start]
            total, start = total + 1, start + 1
            self._drop_overlapping(start, overlap)
        return self._chosen[:total]

    def _drop_overlapping(self, start: int, most: np.float32) -> None:
        """Drops boxes from `start` on that share more than `most` of what both cover with the one before them."""
        box, others = self._sorted[:, start - 1], self._sorted[:, start:]
        shared, other, union = self._numbers[:, start:]
        free, mark, drop = self._marks[:, start:]
        np.minimum(others[_BOTTOM], box[_BOTTOM], out=shared)
        np.maximum(others[_TOP], box[_TOP], out=other)
        np.subtract(shared, other, shared)
        np.minimum(others[_RIGHT], box[_RIGHT], out=other)
        np.maximum(others[_LEFT], box[_LEFT], out=union)
        np.subtract(other, union, other)
        np.greater(shared, 0, drop)
        np.greater(other, 0, mark)
        np.logical_and(drop, mark, drop)
        np.multiply(shared, other, shared)
        np.add(others[_AREA], box[_AREA], union)
        np.subtract(union, shared, union)
        for positive in (shared, others[_AREA], union):  # without an area, nothing is shared
            np.greater(positive, 0, mark)
            np.logical_and(drop, mark, drop)
        if not box[_AREA] > 0:
            return
        np.divide(shared, union, shared)
        np.greater(shared, most, mark)
        np.logical_and(drop, mark, drop)
        np.greater(free, drop, free)
