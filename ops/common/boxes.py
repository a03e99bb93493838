"""Work cut into pieces that stay in cache: boxes of a tensor, ranges of its rows."""

import math
from collections.abc import Iterator
from itertools import islice

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
    def ranges(self) -> tuple[slice, ...]:
        """Returns the range along each dimension."""
        return tuple(map(slice, self.firsts, self.lasts))

    @property
    def flat(self) -> slice:
        """Returns the elements of the box, as a slice of the tensor seen as one dimension."""
        return slice(self.start, self.start + math.prod(self.shape))


def longest(length: int, most: int) -> int:
    """Returns the length of the first of the `pieces`, which is the longest; 0 where there are none."""
    return -(-length // -(-length // max(most, 1))) if length else 0


def pieces(length: int, most: int) -> list[tuple[int, int]]:
    """Cuts [0, length) into the fewest ranges of at most `most` (at least 1), all nearly equally long."""
    size = longest(length, most)
    return [(a, min(a + size, length)) for a in range(0, length, max(size, 1))]


@frozen
class Boxes:
    """The boxes of a shape in C order: at most `most` elements along an axis, one along those before, all behind it.

    They are made as they are asked for. A shape without dimensions is one box.
    """

    shape: Shape
    axis: int
    most: int

    @property
    def largest(self) -> tuple[Box, ...]:
        """Returns the first box, which is the longest along every dimension; nothing where there are none."""
        return tuple(islice(self, 1))

    def __len__(self) -> int:
        if 0 in self.shape or not self.shape:
            return 0 if self.shape else 1
        return math.prod(self.shape[: self.axis]) * -(-self.shape[self.axis] // max(self.most, 1))

    def __iter__(self) -> Iterator[Box]:
        if 0 in self.shape or not self.shape:
            yield from () if self.shape else (Box((), (), 0),)
            return
        length, rest = self.shape[self.axis], self.shape[self.axis + 1 :]
        inner, size = math.prod(rest), longest(length, self.most)
        for number, outer in enumerate(_indices(self.shape[: self.axis])):
            for first in range(0, length, size):
                last = min(first + size, length)
                firsts = (*outer, first, *(0 for _ in rest))
                lasts = (*(i + 1 for i in outer), last, *rest)
                yield Box(firsts, lasts, (number * length + first) * inner)


def _indices(shape: Shape) -> Iterator[Shape]:
    """Yields all indices of a shape in C order, one after the other: `product` would begin with lists of each range."""
    if not shape:
        yield ()
        return
    for outer in _indices(shape[:-1]):
        for i in range(shape[-1]):
            yield (*outer, i)


def boxes(shape: Shape, most: int) -> Boxes:
    """Cuts `shape` into boxes of at most `most` elements (at least 1); whole inner dimensions first."""
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= most:
        axis -= 1
        inner *= shape[axis]
    return Boxes(shape, axis - 1, most // inner) if axis else Boxes(shape, 0, most)
