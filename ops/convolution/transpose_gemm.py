"""Transposed convolution through blocks of columns, or as one matrix product for 1x1 windows.

It is also the gradient of a convolution by its input, so two operators have these kernels.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import Any

import numpy as np

from ops.common.batches import dense_images
from ops.common.boxes import Box, Boxes, boxes
from ops.common.thunks import in_turn, made_anew
from ops.common.windows import CONV_ATTRIBUTES, Windows, tap_range
from ops.convolution.depthwise_gradient import bind_depthwise_data, depthwise_kernel
from ops.convolution.gemm import COLUMN_BYTES
from ops.convolution.shapes import check_operands
from ops.convolution.transpose_shapes import TransposeCase, transpose_case
from ops.schema.attributes import Attribute, integers
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    Signature,
    Specs,
    Thunk,
    contiguous_from,
    unless,
)
from ops.tensor.spec import Array, TensorSpec, compute_dtype

Index = tuple[Any, ...]
BATCHED_PIXELS = 1024
"""Most pixels of several images that are multiplied at once. Trades workspace for fewer calls of BLAS; no benchmark
covers it."""


def infer_transpose(inputs: Specs, attrs: Attrs) -> Specs:
    """Returns y, (N, O, outputs...)."""
    x, w = inputs[:2]
    case = transpose_case(x, w, attrs)
    check_operands(inputs, case.out_channels)
    return (x.with_shape((x.shape[0], case.out_channels, *case.windows.sizes)),)


def _case(signature: Signature) -> TransposeCase:
    return transpose_case(signature.inputs[0], signature.inputs[1], signature.attrs)


def _blocks(signature: Signature, case: TransposeCase) -> Boxes:
    """Returns boxes of (images, pixels...): parts of one image, or several small images."""
    column = case.out_channels * case.taps * compute_dtype(signature.x.dtype).itemsize
    most = min(COLUMN_BYTES // max(column, 1), max(math.prod(case.windows.outputs), BATCHED_PIXELS))
    return boxes((signature.x.shape[0], *case.windows.outputs), max(most, 1))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of products of one block, and of pixels of several images.

    For float16 there are also images of y, and the weights.
    """
    case, dtype = _case(signature), compute_dtype(signature.x.dtype)
    cut, half = _blocks(signature, case).largest, dtype != signature.x.dtype
    pixels = max((math.prod(b.shape) for b in cut), default=0)
    beside = max((math.prod(b.shape) for b in cut if half or b.shape[0] > 1), default=0)
    images = max((b.shape[0] for b in cut), default=0) if half else 0
    weights = signature.inputs[1].size if half and 1 not in signature.constants else 0
    sizes = (case.out_channels * case.taps * pixels, case.channels * beside)
    return tuple(TensorSpec((n,), dtype) for n in (*sizes, images * math.prod(signature.y.shape[1:]), weights))


def _scatter(block: Array, y: Array, case: TransposeCase, box: Box) -> Iterator[Thunk]:
    """Yields the steps that add the products (O, kernel..., images, pixels...) to y (images, O, spatial...)."""
    w = case.windows
    apart = np.moveaxis(block, 1 + w.ndim, 0)
    for taps in product(*map(range, w.kernel)):
        ranges = [tap_range(w, a, t, box.firsts[1 + a], box.lasts[1 + a]) for a, t in enumerate(taps)]
        inside: Index = (..., *(inside for _, inside in ranges))
        pixels: Index = (slice(None), slice(None), *taps, *(pixels for pixels, _ in ranges))
        if y[inside].size:
            yield partial(np.add, y[inside], apart[pixels], y[inside])


def _pixels(x: Array, box: Box, buffer: Array) -> tuple[list[Thunk], Array]:
    """Returns the steps that copy x (images, group, C / group, pixels) of a box, and it as a matrix for each group."""
    images, size = x[box.firsts[0] : box.lasts[0]], math.prod(box.shape[1:])
    start = box.start - box.firsts[0] * x.shape[3]
    part = images[..., start : start + size]
    if len(part) == 1 and buffer.dtype == x.dtype:
        return [], part[0]
    beside = buffer[: part.size].reshape((*x.shape[1:3], len(part), size))
    return [partial(np.copyto, beside, np.moveaxis(part, 0, 2))], beside.reshape((*x.shape[1:3], len(part) * size))


def _begin(call: Binding, total: Array, case: TransposeCase) -> Thunk:
    """Returns the step that writes the first values of the sums: zeros, or the bias."""
    if len(call.inputs) < 3:
        return partial(total.fill, 0)
    return partial(np.copyto, total, call.inputs[2].reshape((-1,) + (1,) * case.windows.ndim))


def _images(call: Binding, case: TransposeCase, cut: Sequence[Box], scratch: Sequence[Array]) -> Iterator[Thunk]:
    """Yields the steps of the boxes of the same images."""
    products, pixels, out, weights = scratch
    y = call.y[cut[0].firsts[0] : cut[0].lasts[0]]
    total = out[: y.size].reshape(y.shape) if out.size else y
    x = call.x.reshape((len(call.x), case.group, case.channels // case.group, math.prod(case.windows.outputs)))
    matrix = weights.reshape((case.group, case.channels // case.group, -1)).swapaxes(1, 2)
    yield _begin(call, total, case)
    for box in cut:
        placing, part = _pixels(x, box, pixels)
        yield from placing
        block = products[: matrix.shape[0] * matrix.shape[1] * part.shape[2]]
        yield partial(np.matmul, matrix, part, block.reshape((*matrix.shape[:2], -1)))
        apart = block.reshape((case.out_channels, *case.windows.kernel, *box.shape))
        yield from made_anew(partial(_scatter, apart, total, case, box), case.taps)
    if total is not y:
        yield partial(np.copyto, y, total, casting="same_kind")


def _bind(call: Binding) -> Thunk:
    case = _case(call.signature)
    *scratch, buffer = call.temporaries
    weights, cut = call.inputs[1], _blocks(call.signature, case)
    steps: list[Thunk] = [] if cut else [_begin(call, call.y, case)]
    if call.packed:
        weights = call.packed[0]
    elif buffer.size:
        steps.append(partial(np.copyto, buffer.reshape(weights.shape), weights))
        weights = buffer
    for _, same in groupby(cut, lambda box: box.firsts[0]):
        steps += _images(call, case, list(same), (*scratch, weights))
    return in_turn(*steps)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    dtype = compute_dtype(signature.x.dtype)
    return (constants[1].astype(dtype),) if _packed_specs(signature) else ()


def _packed_specs(signature: Signature) -> Specs:
    dtype = compute_dtype(signature.x.dtype)
    return (signature.inputs[1].with_dtype(dtype),) if 1 in signature.constants and dtype != signature.x.dtype else ()


def transpose_cost(signature: Signature) -> Cost:
    """Returns two operations for each product that is added to y."""
    return Cost(2 * signature.x.shape[0] * _case(signature).products, signature.nbytes)


def _pointwise(signature: Signature) -> bool:
    plain = compute_dtype(signature.x.dtype) == signature.x.dtype
    return plain and _case(signature).windows.pointwise


_not_pointwise = unless(_pointwise, "windows of several pixels, or with gaps")


def _bind_pointwise(call: Binding) -> Thunk:
    case = _case(call.signature)
    pixels = math.prod(case.windows.outputs)
    weights = call.inputs[1].reshape((case.group, case.channels // case.group, -1)).swapaxes(1, 2)
    x = call.x.reshape((len(call.x), case.group, case.channels // case.group, pixels))
    y = call.y.reshape((len(call.x), case.group, case.out_channels // case.group, pixels))
    steps: list[Thunk] = []
    for image, out in zip(x, y, strict=True):
        steps.append(partial(np.matmul, weights, image, out))
        if len(call.inputs) > 2:
            steps.append(partial(np.add, out, call.inputs[2].reshape((case.group, -1, 1)), out))
    return in_turn(*steps)


POINTWISE = Kernel(
    "pointwise",
    _bind_pointwise,
    contiguous=contiguous_from(1),
    reads=dense_images,
    unsupported=_not_pointwise,
    writes=dense_images,
)
"""Windows of one pixel in steps of one: a matrix product, no workspace."""
COLUMNS = Kernel(
    "columns",
    _bind,
    _temporaries,
    contiguous=contiguous_from(1),
    reads=dense_images,
    pack=_pack,
    packed_specs=_packed_specs,
    writes=dense_images,
)
"""Any transposed convolution."""


def _form(signature: Signature) -> tuple[int, int, Windows]:
    case = _case(signature)
    return case.group, case.out_channels, case.windows


DEPTHWISE = depthwise_kernel(bind_depthwise_data, _form)
"""As many groups as channels of the output, in one or two dimensions."""
TRANSPOSE_KERNELS = (POINTWISE, DEPTHWISE, COLUMNS)
TRANSPOSE_ATTRIBUTES = (
    *CONV_ATTRIBUTES,
    Attribute("output_padding", integers, ()),
    Attribute("output_shape", integers, ()),
)
