"""Channels-last depthwise convolution in numpy: each tap times its vector of weights, added up."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.boxes import CACHE_BYTES, Box, Boxes, boxes
from ops.common.epilogue import needs_sums
from ops.common.thunks import in_turn
from ops.convolution.gemm import spans
from ops.convolution.nhwc_gemm import finish_sums, in_groups, padded_part, taps_of
from ops.convolution.nhwc_shapes import as_filters, case_of, dense_operands, operands, padded_size
from ops.convolution.shapes import ConvCase
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.schema.workspace import prefix
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels


def _boxes(case: ConvCase, itemsize: int) -> Boxes:
    """Returns boxes of output pixels whose sums stay in the cache."""
    return boxes(case.windows.outputs, CACHE_BYTES // 4 // max(case.out_channels * itemsize, 1))


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of products of one tap, padded pixels, and sums of a box."""
    case, dtype = case_of(signature), signature.x.dtype
    cut = _boxes(case, dtype.itemsize).largest
    size = case.out_channels * max((math.prod(b.shape) for b in cut), default=0)
    padded = max((padded_size(case, spans(case.windows, b)) for b in cut), default=0)
    sizes = size if case.taps > 1 else 0, padded, size if needs_sums(signature) else 0
    return tuple(TensorSpec((n,), dtype) for n in sizes)


def _box(call: Binding, case: ConvCase, number: int, box: Box, scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields the steps of one box of one image."""
    products, pixels, buffer = scratch
    part, steps = padded_part(call.x[number], pixels, case.windows, box)
    yield from steps
    lead = (slice(None),) * case.windows.ndim
    taps = in_groups(taps_of(part, case.windows, box), case.channels)
    weights = as_filters(call.inputs[1], case)[:, :, 0]
    out, residual = call.y[number][box.ranges], operands(call)[1]
    sums = prefix(buffer, out.shape) if buffer.size else out
    split = in_groups(sums, case.channels)
    for tap, place in enumerate(np.ndindex(*case.windows.kernel)):
        target = prefix(products, split.shape) if tap else split
        yield partial(np.multiply, taps[*lead, *place], weights[:, tap], target)
        if tap:
            yield partial(np.add, split, target, split)
    yield from finish_sums(call, sums, out, None if residual is None else residual[number][box.ranges])


def _bind(call: Binding) -> Thunk:
    case, scratch = case_of(call.signature), call.temporaries
    steps: list[Thunk] = []
    for number in range(case.batch):
        for box in _boxes(case, call.x.itemsize):
            steps += _box(call, case, number, box, scratch)
    return in_turn(*steps)


def _is_depthwise(signature: Signature) -> bool:
    case = case_of(signature)
    return case.group == case.channels > 1


_not_depthwise = unless(_is_depthwise, "not one group for each channel")


DEPTHWISE = Kernel(
    "depthwise",
    _bind,
    _temporaries,
    contiguous=dense_operands,
    unsupported=_not_depthwise,
    writes=dense_pixels,
)
"""As many groups as channels."""
