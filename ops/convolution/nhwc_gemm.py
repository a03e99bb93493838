"""Channels-last convolution as matrix products: pixels times weights, in place or through columns (im2col).

Chellapilla, Puri, Simard, "High Performance Convolutional Neural Networks for Document Processing" (2006). A column
of the paper is a row here: the taps of one output pixel, each with its channels side by side.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ops.common.boxes import Box, longest, pieces
from ops.common.epilogue import finish, hold, needs_sums
from ops.common.thunks import in_turn
from ops.common.windows import Windows, window_view
from ops.convolution.gemm import clip, columns, spans
from ops.convolution.nhwc_shapes import (
    as_filters,
    case_of,
    dense_operands,
    filters,
    operands,
    pack_filters,
    packed_filters,
    padded_size,
)
from ops.convolution.shapes import ConvCase
from ops.schema.schema import Binding, Kernel, Signature, Thunk, first_weights, unless
from ops.schema.workspace import prefix
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels, rows

_PIECE_BYTES = 1 << 20
"""Most bytes of y between a product and its activation, unless it has _FEW pixels or less: they stay in a second-level
cache."""
_FEW = 256
"""Least pixels of a product, because BLAS packs the weights again for each product."""


def _weights(signature: Signature, case: ConvCase) -> int:
    """Returns the elements of the weights as matrices; 0 if they are packed in advance."""
    return 0 if 1 in signature.constants else math.prod(filters(case))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of columns, padded pixels, sums of a block, and weights."""
    case, dtype = case_of(signature), signature.x.dtype
    cut = columns(case, dtype).largest
    pixels = max((math.prod(b.shape) for b in cut), default=0)
    padded = max((padded_size(case, spans(case.windows, b)) for b in cut), default=0)
    sums = case.out_channels * pixels if needs_sums(signature) else 0
    sizes = case.channels * case.taps * pixels, padded, sums, _weights(signature, case)
    return tuple(TensorSpec((s,), dtype) for s in sizes)


def padded_part(image: Array, buffer: Array, w: Windows, box: Box) -> tuple[Array, list[Thunk]]:
    """Returns the pixels (spatial..., C) that the windows of a box read, and the steps that copy them if padded."""
    source, target = clip(w, box)
    part = image[source]
    if not w.padded:
        return part, []
    padded = prefix(buffer, (*spans(w, box), image.shape[-1]))
    steps: list[Thunk] = [] if part.shape == padded.shape else [partial(padded.fill, 0)]
    return padded, [*steps, partial(np.copyto, padded[target], part)]


def taps_of(part: Array, w: Windows, box: Box) -> Array:
    """Returns the view (box..., kernel..., C) of the pixels that the windows of a box read."""
    view = window_view(np.moveaxis(part, -1, 0), w, box.shape)
    order = (*range(1 + w.ndim, 1 + 2 * w.ndim), *range(1, 1 + w.ndim), 0)
    return view.transpose(order)


def in_groups(array: Array, group: int) -> Array:
    """Returns the view (..., group, C / group) of (..., C)."""
    step, channels = array.strides[-1], array.shape[-1] // group
    shape, strides = (*array.shape[:-1], group, channels), (*array.strides[:-1], channels * step, step)
    return as_strided(array, shape, strides) if array.size else np.empty(shape, array.dtype)


def gather_rows(image: Array, column: Array, buffer: Array, case: ConvCase, box: Box) -> tuple[Array, list[Thunk]]:
    """Returns the columns (group, pixels, taps * channels of it) of a box, and the steps that write them."""
    w, group, channels = case.windows, case.group, case.channels // case.group
    part, steps = padded_part(image, buffer, w, box)
    block = prefix(column, (group, *box.shape, *w.kernel, channels))
    taps = taps_of(part, w, box)
    steps.append(partial(np.copyto, np.moveaxis(block, 0, -2), in_groups(taps, group)))
    return block.reshape((group, math.prod(box.shape), case.taps * channels)), steps


def product(matrix: Array, weights: Array, out: Array, buffer: Array) -> tuple[Array, Thunk]:
    """Returns sums of some pixels, and the step that computes them: in `buffer` unless it is empty, else in `out`.

    The matrix is (group, pixels, depth), the weights (group, depth, outputs of it), the sums (pixels, outputs).
    """
    sums = prefix(buffer, out.shape) if buffer.size else out
    return sums, partial(np.matmul, matrix, weights, in_groups(sums, len(weights)).transpose(1, 0, 2))


def finish_sums(call: Binding, sums: Array, out: Array, rest: Array | None) -> Iterator[Thunk]:
    """Yields the steps from sums to y: `out` is the part of y, `rest` that of the tensor to add, in any shape."""
    bias = operands(call)[0]
    if needs_sums(call.signature):
        shape = out.shape if rest is None else rest.shape
        yield from finish(sums.reshape(shape), out.reshape(shape), bias, rest, call.attrs)
        return
    if bias is not None:
        yield partial(np.add, out, bias, out)
    yield from hold(out, call.attrs)


def _bind(call: Binding) -> Thunk:
    case = case_of(call.signature)
    column, pixels, buffer, spread = call.temporaries
    steps, weights = _as_matrices(call, case, spread)
    flat, residual = rows(call.y), operands(call)[1]
    for number, image in enumerate(call.x):
        for box in columns(case, column.dtype):
            matrix, copies = gather_rows(image, column, pixels, case, box)
            start = number * case.pixels + box.start
            out = flat[start : start + matrix.shape[1]]
            sums, multiply = product(matrix, weights, out, buffer)
            rest = None if residual is None else residual[number][box.ranges]
            steps += [*copies, multiply, *finish_sums(call, sums, out, rest)]
    return in_turn(*steps)


def _as_matrices(call: Binding, case: ConvCase, buffer: Array) -> tuple[list[Thunk], Array]:
    """Returns the steps that write the weights as matrices, unless they are packed, and these matrices."""
    if call.packed:
        return [], call.packed[0]
    spread = as_filters(call.inputs[1], case)
    if not buffer.size:  # constant, but not packed
        return [], np.ascontiguousarray(spread).reshape(filters(case))
    return [partial(np.copyto, buffer.reshape(spread.shape), spread)], buffer.reshape(filters(case))


def _piece(signature: Signature) -> int:
    """Returns how many pixels of y are finished, at most, while they are in the cache."""
    pixel = max(signature.y.shape[-1] * signature.y.dtype.itemsize, 1)
    return max(_FEW, _PIECE_BYTES // pixel)


def _pointwise_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of sums of some pixels, and of weights."""
    most = longest(math.prod(signature.y.shape[:-1]), _piece(signature))
    case = case_of(signature)
    sums = case.out_channels * most if needs_sums(signature) else 0
    return tuple(TensorSpec((n,), signature.x.dtype) for n in (sums, _weights(signature, case)))


def _bind_pointwise(call: Binding) -> Thunk:
    case = case_of(call.signature)
    buffer, spread = call.temporaries
    steps, weights = _as_matrices(call, case, spread)
    x, y, residual = rows(call.x), rows(call.y), operands(call)[1]
    rest = None if residual is None else rows(residual)
    for a, b in pieces(len(y), _piece(call.signature)):
        sums, multiply = product(in_groups(x[a:b], case.group).transpose(1, 0, 2), weights, y[a:b], buffer)
        steps += [multiply, *finish_sums(call, sums, y[a:b], None if rest is None else rest[a:b])]
    return in_turn(*steps)


def _is_pointwise(signature: Signature) -> bool:
    return case_of(signature).windows.pointwise


_not_pointwise = unless(_is_pointwise, "windows of several pixels, or with gaps")


def _dense_inputs(signature: Signature) -> tuple[int, ...]:
    """Returns weights and bias; x, too, where a matrix is multiplied by a vector (ops.products.blas)."""
    has_vectors = filters(case_of(signature))[-1] == 1
    return (*range(has_vectors), *dense_operands(signature))


POINTWISE = Kernel(
    "pointwise",
    _bind_pointwise,
    _pointwise_temporaries,
    contiguous=_dense_inputs,
    reads=dense_pixels,
    pack=pack_filters,
    packed_specs=packed_filters,
    unread_after_pack=first_weights,
    unsupported=_not_pointwise,
    writes=dense_pixels,
)
"""Windows of one pixel in steps of one: matrix products in place."""
COLUMNS = Kernel(
    "columns",
    _bind,
    _temporaries,
    contiguous=dense_operands,
    pack=pack_filters,
    packed_specs=packed_filters,
    unread_after_pack=first_weights,
    writes=dense_pixels,
)
"""Any convolution. x may have any strides, channels first too."""
