"""Convolution as matrix products: directly for 1x1 windows, else block by block through columns (im2col).

Chellapilla, Puri, Simard, "High Performance Convolutional Neural Networks for Document Processing" (2006). The
workspace holds the columns of one block, and a zero-padded copy of the pixels that it reads.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ops.common.batches import dense_images
from ops.common.boxes import Box, Boxes, boxes
from ops.common.thunks import in_turn
from ops.common.windows import Windows, window_view
from ops.convolution.shapes import ConvCase, case_of
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, contiguous_at, unless
from ops.schema.workspace import prefix
from ops.tensor.spec import Array, Shape, TensorSpec, compute_dtype

COLUMN_BYTES = 1 << 20
"""Most bytes of one block of columns; a block has at least one pixel. Trades workspace and cache misses for calls."""
_ONE_BLOCK = 2 << 20
"""Columns of up to this many bytes are one block, because BLAS packs the weights again for each block."""


def _plain(signature: Signature) -> bool:
    return compute_dtype(signature.x.dtype) == signature.x.dtype


def columns(case: ConvCase, dtype: np.dtype[Any]) -> Boxes:
    """Returns the blocks of output pixels whose columns are multiplied at once."""
    column = case.channels * case.taps * dtype.itemsize
    most = _ONE_BLOCK if column * case.pixels <= _ONE_BLOCK else COLUMN_BYTES
    return boxes(case.windows.outputs, most // max(column, 1))


def spans(w: Windows, box: Box) -> Shape:
    """Returns the elements that the windows of a box reach over, along each dimension."""
    return tuple(w.reach(a, n) for a, n in enumerate(box.shape))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of columns, padded pixels, and (for float16) products, weights and bias in float32.

    A spec is empty where the array is not needed.
    """
    case, dtype = case_of(signature), compute_dtype(signature.x.dtype)
    cut = columns(case, dtype).largest
    pixels = max((math.prod(b.shape) for b in cut), default=0)
    padded = max((math.prod(spans(case.windows, b)) for b in cut), default=0) if case.windows.padded else 0
    sizes = [case.channels * case.taps * pixels, case.channels * padded, 0, 0, 0]
    if not _plain(signature):
        sizes[2] = case.out_channels * pixels
        if 1 not in signature.constants:
            sizes[3] = signature.inputs[1].size
        if 2 not in signature.constants:
            sizes[4] = case.out_channels
    return tuple(TensorSpec((s,), dtype) for s in sizes)


def clip(w: Windows, box: Box) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Returns the pixels of the tensor that the box reads, and their places in its padded copy."""
    source, target = [], []
    for axis, (first, span) in enumerate(zip(box.firsts, spans(w, box), strict=True)):
        start = first * w.strides[axis] - w.begins[axis]
        low, high = max(start, 0), max(min(start + span, w.sizes[axis]), 0)
        source.append(slice(low, max(low, high)))
        target.append(slice(low - start, max(low, high) - start))
    return tuple(source), tuple(target)


def gather(image: Array, column: Array, pixels: Array, w: Windows, box: Box) -> Iterator[Thunk]:
    """Yields the steps that write the columns of a box: (C, kernel..., box...)."""
    source, target = clip(w, box)
    part = image[:, *source]
    if w.padded:
        padded = prefix(pixels, (len(image), *spans(w, box)))
        if part.shape != padded.shape:
            yield partial(padded.fill, 0)
        yield partial(np.copyto, padded[:, *target], part)
        part = padded
    yield partial(np.copyto, column, window_view(part, w, box.shape))


def _multiply(weights: Array, column: Array, product: Array, y: Array, bias: Array | None) -> Iterator[Thunk]:
    """Yields the steps that write a block: weights @ column + bias, through `product` where y has another type."""
    out = y if product.size == 0 else prefix(product, y.shape)
    yield partial(np.matmul, weights, column, out)
    if bias is not None:
        yield partial(np.add, out, bias, out)
    if out is not y:
        yield partial(np.copyto, y, out, casting="same_kind")


def matrix(case: ConvCase, pixels: int) -> Shape:
    """Returns the shape of this many output pixels of all channels, as a matrix for each group."""
    return (*case.filters[:-1], pixels)


def _operands(call: Binding, scratch: tuple[Array, ...], case: ConvCase) -> tuple[list[Thunk], Array, Array | None]:
    """Returns the steps that convert weights and bias to the type of the computation, and both as matrices."""
    constants = sorted(p for p in (1, 2) if p in call.signature.constants) if call.packed else []
    steps: list[Thunk] = []
    matrices: list[Array] = []
    for position in range(1, len(call.inputs)):
        operand, buffer = call.inputs[position], scratch[position - 1]
        if position in constants:
            operand = call.packed[constants.index(position)]
        elif buffer.size:
            steps.append(partial(np.copyto, buffer.reshape(operand.shape), operand))
            operand = buffer
        matrices.append(operand.reshape(case.filters if position == 1 else (*case.filters[:-1], 1)))
    return steps, matrices[0], matrices[1] if len(matrices) > 1 else None


def _bind(call: Binding) -> Thunk:
    case, w = case_of(call.signature), case_of(call.signature).windows
    column, pixels, product, *rest = call.temporaries
    steps, weights, bias = _operands(call, tuple(rest), case)
    for image, y in zip(call.x, call.y, strict=True):
        rows = y.reshape(matrix(case, case.pixels))
        for box in columns(case, column.dtype):
            block = prefix(column, (case.channels, *w.kernel, *box.shape))
            flat = block.reshape((*case.filters[:-2], case.filters[-1], math.prod(box.shape)))
            steps += gather(image, block, pixels, w, box)
            steps += _multiply(weights, flat, product, rows[..., box.flat], bias)
    return in_turn(*steps)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if _plain(signature):
        return ()
    dtype = compute_dtype(signature.x.dtype)
    return tuple(constants[p].astype(dtype) for p in (1, 2) if p in constants)


def _packed_specs(signature: Signature) -> Specs:
    if _plain(signature):
        return ()
    dtype = compute_dtype(signature.x.dtype)
    return tuple(signature.inputs[p].with_dtype(dtype) for p in (1, 2) if p in signature.constants)


def _bind_pointwise(call: Binding) -> Thunk:
    case = case_of(call.signature)
    weights, y = call.inputs[1].reshape(case.filters), call.y.reshape((case.batch, *matrix(case, case.pixels)))
    depth = (*case.filters[:-2], case.filters[-1])
    x = call.x.reshape((case.batch, *depth, case.pixels))
    steps: list[Thunk] = []
    for image, out in zip(x, y, strict=True):
        steps.append(partial(np.matmul, weights, image, out))
        if len(call.inputs) > 2:
            bias = call.inputs[2].reshape((*case.filters[:-1], 1))
            steps.append(partial(np.add, out, bias, out))
    return in_turn(*steps)


def _pointwise(signature: Signature) -> bool:
    return _plain(signature) and case_of(signature).windows.pointwise


_not_pointwise = unless(_pointwise, "windows of several pixels, or with gaps, or float16")


POINTWISE = Kernel(
    "pointwise",
    _bind_pointwise,
    contiguous=contiguous_at(1, 2),
    reads=dense_images,
    unsupported=_not_pointwise,
    writes=dense_images,
)
"""Windows of one pixel in steps of one: a matrix product, no workspace."""
COLUMNS = Kernel(
    "columns",
    _bind,
    _temporaries,
    contiguous=contiguous_at(1, 2),
    pack=_pack,
    packed_specs=_packed_specs,
    writes=dense_images,
)
"""Any convolution."""
