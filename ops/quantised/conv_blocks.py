"""Convolution of int8 and uint8, exact in int32, as products of columns: blocks, and the steps that compute one.

The scheme is that of `ops.convolution.gemm`, but each block has no more channels than one exact product takes, so that
neither columns nor weights are ever converted as a whole.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, Box, Boxes, boxes, longest, pieces
from ops.common.windows import window_view
from ops.convolution.gemm import clip, spans
from ops.convolution.shapes import ConvCase
from ops.products.integer_gemm import EXACT_DEPTH, accumulate, centred
from ops.quantised.params import SINGLE
from ops.schema.schema import Thunk
from ops.schema.workspace import prefix
from ops.tensor.spec import Array, TensorSpec

_ELEMENTS = CACHE_BYTES // 16
"""Most elements of weights, pixels, columns and products of one block, so that all four stay in cache. A block has at
least one output channel and one output pixel."""
INT32 = np.dtype("int32")
Pair = tuple[Array, Array]


@frozen(eq=False)
class Blocks:
    """A convolution cut so that its temporaries are small: groups, their input channels, output pixels."""

    case: ConvCase

    @property
    def depth(self) -> int:
        """Returns the channels of one group."""
        return self.case.channels // self.case.group

    @property
    def outputs(self) -> int:
        """Returns the output channels of one group."""
        return self.case.out_channels // self.case.group

    @property
    def groups(self) -> int:
        """Returns the most groups in one block."""
        return max(1, min(self.case.group, EXACT_DEPTH // max(self.depth * self.case.taps, 1)))

    @property
    def channels(self) -> int:
        """Returns the most channels of each group in one block."""
        return max(1, min(self.depth, EXACT_DEPTH // self.case.taps))

    @property
    def rows(self) -> int:
        """Returns the most rows of columns."""
        return self.groups * self.channels * self.case.taps

    @property
    def filters(self) -> int:
        """Returns the most output channels of each group whose weights are converted at once."""
        return longest(self.outputs, _ELEMENTS // max(self.rows, 1))

    def boxes(self) -> Boxes:
        """Returns boxes of output pixels."""
        return boxes(self.case.windows.outputs, max(1, _ELEMENTS // max(self.rows, self.groups * self.filters, 1)))

    def sums(self) -> Iterator[tuple[slice, Box]]:
        """Yields all blocks of the output of one image: groups and pixels."""
        for first, last in pieces(self.case.group, self.groups):
            for box in self.boxes():
                yield slice(first, last), box

    def scratch_specs(self, *, with_sums: bool) -> tuple[TensorSpec, ...]:
        """Returns the specs of weights, pixels, columns and products in float32, and of sums and addends in int32.

        A spec is empty where the array is not needed. Where there are sums, the products have room for all of them.
        """
        cut, w = self.boxes().largest, self.case.windows
        pixels = max((math.prod(b.shape) for b in cut), default=0)
        reach = max((math.prod(spans(w, b)) for b in cut), default=0)
        of_sums, of_products = (self.groups * n * pixels for n in (self.outputs * with_sums, self.filters))
        reals = max(of_sums, of_products)
        singles = (self.rows * self.filters, self.groups * self.channels * reach, self.rows * pixels, reals)
        longer = self.depth > self.channels or self.case.taps > EXACT_DEPTH
        specs = [TensorSpec((n,), SINGLE) for n in singles]
        return *specs, TensorSpec((of_sums,), INT32), TensorSpec((of_products * longer,), INT32)


@frozen(eq=False)
class Work:
    """The inputs of a convolution, weights as (group, outputs, depth, taps), and its temporaries."""

    blocks: Blocks
    x: Array
    weights: Array
    x_zero: Array
    w_zero: Array
    scratch: Sequence[Array]

    @classmethod
    def of(cls, blocks: Blocks, factors: Pair, zeros: Pair, scratch: Sequence[Array]) -> "Work":
        """Returns the work for zero points in float32 and arrays of `scratch_specs`."""
        x, w = factors
        weights = w.reshape(blocks.case.group, blocks.outputs, blocks.depth, blocks.case.taps)
        return cls(blocks, x, weights, zeros[0].reshape(()), by_output(blocks, zeros[1]), scratch)

    def columns(self, image: Array, channels: slice, box: Box) -> tuple[list[Thunk], Array]:
        """Returns the steps that write the columns of a box, and the columns (channels * taps, pixels)."""
        case, w = self.blocks.case, self.blocks.case.windows
        source, target = clip(w, box)
        part = image[channels]
        padded = prefix(self.scratch[1], (len(part), *spans(w, box)))
        inside = padded[:, *target]
        steps: list[Thunk] = [partial(padded.fill, 0)] if inside.shape != padded.shape else []
        if inside.size:
            steps += centred(part[:, *source], self.x_zero, inside)
        rows = (len(part) * case.taps, math.prod(box.shape))
        if case.taps == 1 and padded.shape[1:] == box.shape:
            return steps, padded.reshape(rows)
        column = prefix(self.scratch[2], (len(part), *w.kernel, *box.shape))
        steps.append(partial(np.copyto, column, window_view(padded, w, box.shape)))
        return steps, column.reshape(rows)

    def filters(self, groups: slice, outputs: slice, depth: slice) -> tuple[Iterator[Thunk], Array]:
        """Returns the steps that write weights, and the weights (groups, outputs, depth * taps)."""
        part = self.weights[groups, outputs, depth]
        buffer = prefix(self.scratch[0], part.shape)
        return centred(part, self.w_zero[groups, outputs], buffer), buffer.reshape(*part.shape[:2], -1)

    def sums(self, image: Array, groups: slice, box: Box, y: Array) -> Iterator[Thunk]:
        """Yields the steps to y (groups, outputs, pixels), sums of products in int32."""
        blocks = self.blocks
        for start, stop in pieces(blocks.depth, blocks.channels):
            first, last = groups.start * blocks.depth + start, (groups.stop - 1) * blocks.depth + stop
            steps, column = self.columns(image, slice(first, last), box)
            yield from steps
            for outputs in (slice(*ends) for ends in pieces(blocks.outputs, blocks.filters)):
                conversion, weights = self.filters(groups, outputs, slice(start, stop))
                yield from conversion
                part = y[:, outputs]
                scratch = (prefix(s, part.shape) if s.size else s for s in self.scratch[3::2])
                yield from accumulate(weights, column.reshape(len(y), -1, y.shape[2]), part, *scratch, fresh=start == 0)
        if blocks.depth == 0:
            yield partial(y.fill, 0)


def by_output(blocks: Blocks, parameter: Array) -> Array:
    """Returns a parameter of the weights as (group, outputs, 1, 1)."""
    whole = (blocks.case.group, blocks.outputs, 1, 1)
    return np.broadcast_to(parameter, whole) if parameter.size == 1 else parameter.reshape(whole)
