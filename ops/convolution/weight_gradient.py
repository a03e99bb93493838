"""The gradient of a convolution by its weights: dy times the transposed columns (im2col) of x, block by block.

A block is a few rows of one image, or several small images: with fewer blocks, products are added less often.
Products that are added to others are computed for a few output channels at a time, so that they stay in the cache.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from attrs import evolve, frozen

from ops.common.batches import dense_images
from ops.common.boxes import Box, Boxes, boxes, pieces
from ops.common.thunks import in_turn
from ops.common.windows import Windows, windows
from ops.convolution.depthwise_gradient import bind_depthwise_weights, depthwise_kernel
from ops.convolution.gemm import gather, spans
from ops.convolution.shapes import ConvCase, check_operands
from ops.schema.schema import Attrs, Binding, Cost, Kernel, Signature, Specs, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import AttributeValueError, ShapeError
from ops.tensor.spec import Array, TensorSpec, compute_dtype

COLUMN_BYTES = 2 << 20
"""Most bytes of one block of columns; a block has at least one pixel. Trades workspace for fewer additions."""
BATCHED_PIXELS = 1024
"""Most pixels of several images in one block. Trades workspace for fewer additions of products;
tools/bench_layers.py times the backward pass of convolutions."""
PRODUCT_BYTES = 1 << 20
"""Most bytes of products before they are added (at least those of one output channel): they stay in a cache."""


def _case(inputs: Specs, attrs: Attrs) -> ConvCase:
    """Returns the numbers. Raises ShapeError or AttributeValueError where x, dy, groups and windows do not fit."""
    (x, dy), group = inputs, attrs["group"]
    if x.ndim < 3 or dy.ndim != x.ndim or x.shape[0] != dy.shape[0]:
        raise ShapeError(f"data {x.shape} and gradient {dy.shape} must both be (N, channels, spatial...)")
    if group < 1 or x.shape[1] % group or dy.shape[1] % group:
        raise AttributeValueError(f"group is {group}, which does not divide {x.shape[1]} and {dy.shape[1]} channels")
    over_x = windows(x.shape[2:], attrs["kernel_shape"], attrs)
    if any(n > most for n, most in zip(dy.shape[2:], over_x.outputs, strict=True)):
        raise ShapeError(f"gradient {dy.shape} has more pixels than windows that fit into data {x.shape}")
    return ConvCase(x.shape[0], x.shape[1], dy.shape[1], group, evolve(over_x, outputs=dy.shape[2:]))


def infer_weight_gradient(inputs: Specs, attrs: Attrs) -> Specs:
    """Returns dw, (O, C / group, kernel...)."""
    check_operands(inputs, 0)
    case = _case(inputs, attrs)
    return (inputs[0].with_shape((case.out_channels, case.channels // case.group, *case.windows.kernel)),)


def weight_gradient_cost(signature: Signature) -> Cost:
    """Returns two operations for each weight and pixel."""
    case = _case(signature.inputs, signature.attrs)
    return Cost(2 * signature.y.size * case.batch * case.pixels, signature.nbytes)


@frozen(eq=False)
class _Blocks:
    """The blocks of a case: boxes of (images, pixels...), and ranges of the output channels of a group."""

    case: ConvCase
    boxes: Boxes
    channels: list[tuple[int, int]]

    @classmethod
    def of(cls, signature: Signature) -> "_Blocks":
        """Returns the blocks of a signature."""
        case, itemsize = _case(signature.inputs, signature.attrs), compute_dtype(signature.x.dtype).itemsize
        column = max(case.channels * case.taps * itemsize, 1)
        most = min(COLUMN_BYTES // column, max(case.pixels, BATCHED_PIXELS))
        cut = boxes((case.batch, *case.windows.outputs), max(most, 1))
        each = case.out_channels // case.group
        return cls(case, cut, pieces(each, max(PRODUCT_BYTES // column, 1)) if len(cut) > 1 else [(0, each)])

    def temporaries(self, signature: Signature) -> tuple[TensorSpec, ...]:
        """Returns the specs of columns, padded pixels of one image, dy of several images, and products.

        For float16 there are also sums.
        """
        case, dtype = self.case, compute_dtype(signature.x.dtype)
        half, w, largest = dtype != signature.x.dtype, case.windows, self.boxes.largest
        pixels = max((math.prod(b.shape) for b in largest), default=0)
        padded = max((math.prod(spans(w, _inner(b))) for b in largest), default=0) if w.padded else 0
        beside = max((math.prod(b.shape) for b in largest if half or b.shape[0] > 1), default=0)
        rows = max((b - a for a, b in self.channels), default=0) if len(self.boxes) > 1 else 0
        depth = case.channels * case.taps
        in_place = w.pointwise and not half and not beside
        sizes = (0 if in_place else depth * pixels, case.channels * padded, case.out_channels * beside, rows * depth)
        return tuple(TensorSpec((n,), dtype) for n in (*sizes, signature.y.size if half else 0))


def _inner(box: Box) -> Box:
    """Returns the pixels of a box of images and pixels."""
    return Box(box.firsts[1:], box.lasts[1:], 0)


def _flat(case: ConvCase, box: Box) -> slice:
    """Returns the pixels of a box as a range of a flat image."""
    start = box.start - box.firsts[0] * case.pixels
    return slice(start, start + math.prod(box.shape[1:]))


def _temporaries(signature: Signature) -> Specs:
    return _Blocks.of(signature).temporaries(signature)


def _columns(call: Binding, case: ConvCase, box: Box, scratch: tuple[Array, ...]) -> tuple[list[Thunk], Array]:
    """Returns the steps that write the columns of a box, and these as (group, C / group * taps, pixels)."""
    buffer, padded = scratch
    shape = (case.group, case.channels // case.group * case.taps, math.prod(box.shape))
    images = range(box.firsts[0], box.lasts[0])
    if not buffer.size:
        flat = call.x[images[0]].reshape((*shape[:2], case.pixels))
        return [], flat[..., _flat(case, box)]
    block = prefix(buffer, (case.channels, *case.windows.kernel, *box.shape))
    sides = np.moveaxis(block, 1 + case.windows.ndim, 0)
    steps: list[Thunk] = []
    for place, image in enumerate(images):
        steps += gather(call.x[image], sides[place], padded, case.windows, _inner(box))
    return steps, block.reshape(shape)


def _grads(call: Binding, case: ConvCase, box: Box, buffer: Array) -> tuple[list[Thunk], Array]:
    """Returns the steps that copy dy of a box (none if it is read in place), and it as (group, O / group, pixels)."""
    dy = call.inputs[1].reshape((case.batch, case.out_channels, case.pixels))
    shape = (case.group, case.out_channels // case.group, math.prod(box.shape))
    part = dy[box.firsts[0] : box.lasts[0], :, _flat(case, box)]
    if len(part) == 1 and buffer.dtype == dy.dtype:
        return [], part[0].reshape(shape)
    beside = prefix(buffer, (case.out_channels, len(part), part.shape[2]))
    return [partial(np.copyto, beside, part.swapaxes(0, 1))], beside.reshape(shape)


def _products(grads: Array, column: Array, sums: Array, buffer: Array, cut: list[tuple[int, int]]) -> Iterator[Thunk]:
    """Yields the steps that add the products of a block to the sums (group, O / group, depth)."""
    turned = column.swapaxes(1, 2)
    for a, b in cut:
        out = sums[:, a:b]
        product = prefix(buffer, out.shape)
        yield partial(np.matmul, grads[:, a:b], turned, product)
        yield partial(np.add, out, product, out)


def _bind(call: Binding) -> Thunk:
    blocks = _Blocks.of(call.signature)
    case = blocks.case
    buffer, padded, beside, product, total = call.temporaries
    shape = (case.group, case.out_channels // case.group, case.channels // case.group * case.taps)
    sums = (total if total.size else call.y).reshape(shape)
    steps: list[Thunk] = [] if blocks.boxes else [partial(sums.fill, 0)]
    for number, box in enumerate(blocks.boxes):
        gathering, column = _columns(call, case, box, (buffer, padded))
        placing, grads = _grads(call, case, box, beside)
        steps += gathering + placing
        if number:
            steps += _products(grads, column, sums, product, blocks.channels)
        else:
            steps.append(partial(np.matmul, grads, column.swapaxes(1, 2), sums))
    if total.size:
        steps.append(partial(np.copyto, call.y, total.reshape(call.y.shape), casting="same_kind"))
    return in_turn(*steps)


WEIGHT_COLUMNS = Kernel("columns", _bind, _temporaries, reads=dense_images)
"""Any convolution."""


def _form(signature: Signature) -> tuple[int, int, Windows]:
    case = _case(signature.inputs, signature.attrs)
    return case.group, case.channels, case.windows


DEPTHWISE = depthwise_kernel(bind_depthwise_weights, _form)
"""As many groups as channels of x, in one or two dimensions."""
WEIGHT_KERNELS = (DEPTHWISE, WEIGHT_COLUMNS)
