"""Convolution, bias, addition of a tensor and activation as one operator. Passes fuse these four.

The output may overwrite the tensor that is added: a residual addition is computed in place.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from attrs import evolve

from ops.common.batches import dense_images
from ops.common.epilogue import FINISH_ATTRIBUTES, RESIDUAL, finish, hold, limits, needs_sums, require_finish
from ops.common.thunks import in_turn
from ops.common.tiling import conv_stripes
from ops.common.windows import CONV_ATTRIBUTES
from ops.convolution.depthwise import bind_depthwise, depthwise_temporaries, supports_depthwise
from ops.convolution.gemm import COLUMNS, POINTWISE, columns, gather, matrix, spans
from ops.convolution.packed import PACKED, bind_packed
from ops.convolution.shapes import ConvCase, case_of, conv_cost, infer_conv
from ops.schema.backends import NUMBA
from ops.schema.schema import (
    Attrs,
    Binding,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    contiguous_from,
    overwrites_from,
    unless,
)
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec

_HALF = np.dtype("float16")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (y,) = infer_conv(inputs[:RESIDUAL], attrs)
    if y.dtype == _HALF:
        raise DtypeError("takes float32 or float64, not float16")
    for residual in inputs[RESIDUAL:]:
        if residual != y:
            raise ShapeError(f"the tensor to add is {residual}, but the convolution is {y}")
    require_finish(attrs)
    return (y,)


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of columns, padded pixels (empty where there is no padding), and sums of a block."""
    case, dtype = case_of(signature), signature.x.dtype
    cut = columns(case, dtype).largest
    pixels = max((math.prod(b.shape) for b in cut), default=0)
    padded = max((math.prod(spans(case.windows, b)) for b in cut), default=0) if case.windows.padded else 0
    sizes = case.channels * case.taps * pixels, case.channels * padded, case.out_channels * pixels
    return tuple(TensorSpec((s,), dtype) for s in sizes)


def _bind(call: Binding) -> Thunk:
    case = case_of(call.signature)
    scratch = call.temporaries
    steps: list[Thunk] = []
    for number in range(case.batch):
        steps += _image(call, case, number, scratch)
    return in_turn(*steps)


def _image(call: Binding, case: ConvCase, number: int, scratch: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields the steps of one image. Each block is finished while it is in the cache."""
    column, pixels, buffer = scratch
    weights, shape = call.inputs[1].reshape(case.filters), matrix(case, case.pixels)
    bias = call.inputs[2].reshape((*shape[:-1], 1)) if len(call.inputs) > 2 else None
    image, y = call.x[number], call.y[number].reshape(shape)
    rest = call.inputs[RESIDUAL][number].reshape(shape) if len(call.inputs) > RESIDUAL else None
    depth = (*case.filters[:-2], case.filters[-1])
    for box in columns(case, y.dtype):
        block = prefix(column, (case.channels, *case.windows.kernel, *box.shape))
        yield from gather(image, block, pixels, case.windows, box)
        out = y[..., box.flat]
        sums = prefix(buffer, out.shape)
        yield partial(np.matmul, weights, block.reshape((*depth, math.prod(box.shape))), sums)
        yield from finish(sums, out, bias, None if rest is None else rest[..., box.flat], call.attrs)


def _clipped_afterwards(base: Kernel) -> Kernel:
    """Returns the kernel of a convolution, followed by one pass over y that clips."""

    def bind(call: Binding) -> Thunk:
        return in_turn(base.bind(call), *hold(call.y, call.attrs))

    def unsupported(signature: Signature) -> str:
        return "an addition, or an activation that is no clip" if needs_sums(signature) else base.unsupported(signature)

    return evolve(base, bind=bind, unsupported=unsupported)


def _bind_packed(call: Binding) -> Thunk:
    return bind_packed(call, limits(call.attrs))


def _supports_depthwise(signature: Signature) -> bool:
    return not needs_sums(signature) and supports_depthwise(signature)


_not_depthwise = unless(
    _supports_depthwise, "an addition, or an activation that is no clip, or not one group for each channel"
)


def _bind_depthwise(call: Binding) -> Thunk:
    low, high = limits(call.attrs) or (-math.inf, math.inf)
    return bind_depthwise(call, (low, high))


FUSED_PACKED = Kernel(
    "packed",
    _bind_packed,
    PACKED.temporaries,
    contiguous=PACKED.contiguous,
    reads=PACKED.reads,
    pack=PACKED.pack,
    packed_specs=PACKED.packed_specs,
    unread_after_pack=PACKED.unread_after_pack,
    unsupported=PACKED.unsupported,
    writes=PACKED.writes,
    backend=NUMBA,
)
"""Adds and activates while the sums are in registers."""
FUSED_DEPTHWISE = Kernel(
    "depthwise",
    _bind_depthwise,
    depthwise_temporaries,
    contiguous=all_contiguous,
    unsupported=_not_depthwise,
    writes=dense_images,
    backend=NUMBA,
)
FUSED_POINTWISE, FUSED_COLUMNS = (_clipped_afterwards(kernel) for kernel in (POINTWISE, COLUMNS))
FUSED_BLOCKS = Kernel("blocks", _bind, _temporaries, contiguous=contiguous_from(1))
"""Any fused convolution, block by block. Sums go through a scratch array, which separate operators do not need."""
FUSED_CONV = OpSchema(
    name="fused_conv",
    summary="The activation of (convolution + bias + a tensor of the output's shape); inputs x, w, bias, that tensor.",
    infer=_infer,
    kernels=(FUSED_PACKED, FUSED_POINTWISE, FUSED_DEPTHWISE, FUSED_COLUMNS, FUSED_BLOCKS),
    arity=(2, 4),
    attributes=(*CONV_ATTRIBUTES, *FINISH_ATTRIBUTES),
    overwrites=overwrites_from(RESIDUAL),
    cost=conv_cost,
    stripes=conv_stripes,
)
OPS = (FUSED_CONV,)


def pays(signature: Signature) -> bool:
    """Returns whether there is a kernel that needs no scratch array for sums (tools/bench_fusion.py)."""
    return FUSED_CONV.kernel(signature) is not FUSED_BLOCKS
