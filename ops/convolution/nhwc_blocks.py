"""Convolutions in blocks: some lines of one image at a time, or some whole images."""

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from ops.common.windows import Windows
from ops.convolution.shapes import ConvCase
from ops.tensor.spec import Shape


@frozen
class Block:
    """Images, lines of their outputs along the first spatial dimension, and the lines of x that these read (`inputs`).

    `case` is the convolution of these alone.
    """

    images: slice
    outputs: slice
    inputs: slice
    case: ConvCase


def _cut(w: Windows, top: int, bottom: int) -> tuple[slice, Windows]:
    """Returns the lines of x that the outputs [top, bottom) read, and the windows over them."""
    start = top * w.strides[0] - w.begins[0]
    low = min(max(start, 0), w.sizes[0])
    high = max(min(start + w.reach(0, bottom - top), w.sizes[0]), low)
    sizes, begins, outputs = (
        (n, *rest[1:])
        for n, rest in zip((high - low, low - start, bottom - top), (w.sizes, w.begins, w.outputs), strict=True)
    )
    return slice(low, high), evolve(w, sizes=sizes, begins=begins, outputs=outputs)


@frozen(eq=False)
class Blocks:
    """The blocks of a convolution: a padded copy of each has at most `most` bytes, or is a single line.

    `itemsize` is that of an element of the copy, by default float32.
    """

    case: ConvCase
    most: int
    itemsize: int = 4

    @property
    def line(self) -> int:
        """Returns the bytes of one line of the copy."""
        w = self.case.windows
        return (
            self.itemsize * self.case.channels * math.prod(w.reach(axis, w.outputs[axis]) for axis in range(1, w.ndim))
        )

    @property
    def lines(self) -> int:
        """Returns the outputs of a block along the first spatial dimension; all blocks have about as many."""
        w = self.case.windows
        fit = (self.most // max(self.line, 1) - w.extent(0)) // w.strides[0] + 1
        return -(-w.outputs[0] // -(-w.outputs[0] // max(fit, 1)))

    @property
    def images(self) -> int:
        """Returns the images of a block: one, or as many whole ones as fit."""
        w = self.case.windows
        if self.lines < w.outputs[0]:
            return 1
        return min(max(self.most // max(self.line * w.reach(0, self.lines), 1), 1), self.case.batch)

    @property
    def padded(self) -> Shape:
        """Returns the shape of a copy: as far as windows reach, no further."""
        w = self.case.windows
        inner = (w.reach(axis, w.outputs[axis]) for axis in range(1, w.ndim))
        return self.images, w.reach(0, self.lines), *inner, self.case.channels

    def largest(self) -> Iterator[Block]:
        """Yields a few blocks, among them one that reads as many lines of x as any."""
        w, lines = self.case.windows, self.lines
        count, step = -(-w.outputs[0] // lines), lines * w.strides[0]
        middle = (w.begins[0], w.begins[0] + w.sizes[0] - w.reach(0, lines))  # between them pads shorten no block
        near = {0, count - 2, count - 1, *(at // step + more for at in middle for more in (0, 1))}
        return (self._block(0, number * lines) for number in sorted(near) if 0 <= number < count)

    def __iter__(self) -> Iterator[Block]:
        for first in range(0, self.case.batch, max(self.images, 1)):
            for top in range(0, self.case.windows.outputs[0], self.lines):
                yield self._block(first, top)

    def _block(self, first: int, top: int) -> Block:
        w = self.case.windows
        last, bottom = min(first + self.images, self.case.batch), min(top + self.lines, w.outputs[0])
        inputs, along = _cut(w, top, bottom)
        case = evolve(self.case, batch=last - first, windows=along)
        return Block(slice(first, last), slice(top, bottom), inputs, case)
