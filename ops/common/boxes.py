"""Work cut into pieces that stay in cache: boxes of a tensor, ranges of its rows."""

import math
from collections.abc import Iterator
from itertools import product

from attrs import frozen

from ops.tensor.spec import Shape

CACHE_BYTES = 256 << 10
"""Bytes of one piece that several passes go over: they fit into the second-level cache with room to spare."""


@frozen
class Box:
    """A half-open range along each dimension that is contiguous in C order."""

    firsts: Shape
    lasts: Shape
    start: int

    @property
    def shape(self) -> Shape:
        """Returns the lengths of the box."""
        return tuple(b - a for a, b in zip(self.firsts, self.lasts, strict=True))

    @property
    def flat(self) -> slice:
        """Returns the elements of the box, as a slice of the tensor seen as one dimension."""
        return slice(self.start, self.start + math.prod(self.shape))


def pieces(length: int, most: int) -> list[tuple[int, int]]:
    """Cuts [0, length) into the fewest ranges of at most `most` (at least 1), all nearly equally long."""
    if length == 0:
        return []
    count = -(-length // max(most, 1))
    size = -(-length // count)
    return [(a, min(a + size, length)) for a in range(0, length, size)]


def boxes(shape: Shape, most: int) -> list[Box]:
    """Cuts `shape` into boxes of at most `most` elements (at least 1), in C order; whole inner dimensions first."""
    if 0 in shape:
        return []
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= most:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        return [Box((0,) * len(shape), shape, 0)]
    return list(_cut(shape, axis - 1, inner, most // inner))


def _cut(shape: Shape, axis: int, inner: int, most: int) -> Iterator[Box]:
    rest = shape[axis + 1 :]
    for number, outer in enumerate(product(*map(range, shape[:axis]))):
        for a, b in pieces(shape[axis], most):
            firsts = (*outer, a, *(0 for _ in rest))
            lasts = (*(i + 1 for i in outer), b, *rest)
            yield Box(firsts, lasts, (number * shape[axis] + a) * inner)
