"""Depthwise convolution of channels-last quantised values, compiled: neither int8 nor uint8 is copied."""

from collections.abc import Mapping

import numpy as np

from allocator.machine_code.door import address
from ops.convolution.args import TABLE
from ops.convolution.nhwc_shapes import case_of
from ops.native.aligned import aligned_zeros
from ops.native.call import Native, Step
from ops.quantised.nhwc_shapes import BIAS, FACTOR, W, dense_parameters
from ops.quantised.nhwc_source import Source, flip_of, x_zero
from ops.quantised.nhwc_tiled import ROWS, conv_args, has_vnni
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, unless
from ops.tensor.spec import Array, TensorSpec
from ops.windows.args import spatial
from ops.windows.pixels import dense_pixels

_LANES = 16


def _source(signature: Signature) -> Source:
    """Returns x in place; each tap is a run of all channels."""
    w = case_of(signature).windows
    return Source(spatial(w.sizes, 1), spatial(w.kernel, 1), spatial(w.begins, 0), 1, 1, copied=False, line=0)


def _supports(signature: Signature) -> bool:
    if not {W, FACTOR, BIAS} <= signature.constants or signature.x.ndim > 5 or not signature.x.size:
        return False
    case = case_of(signature)
    each = case.group == case.channels == case.out_channels
    return each and case.taps * ROWS <= TABLE and 0 <= x_zero(signature) <= 255 and has_vnni()


_unsupported = unless(
    _supports, "not one group for each channel, or weights that are not constant, or a large window, or no AVX-512 VNNI"
)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns weights (taps, C) as uint32, what sums begin with, factors, and a pixel of zero points.

    C is rounded up to a multiple of 16.
    """
    case = case_of(signature)
    wide, sums, scales, pixel = _packed_specs(signature)
    weights = constants[W].reshape((case.channels, case.taps)).T
    packed = aligned_zeros(wide.shape, wide.dtype)
    packed[:, : case.channels] = weights.astype(np.int16).view(np.uint16)
    starts, factors = aligned_zeros(sums.shape, sums.dtype), aligned_zeros(scales.shape, scales.dtype)
    flip = flip_of(signature.x.dtype)
    zero = x_zero(signature) - flip
    starts[: case.channels] = constants[BIAS] - weights.sum(0, dtype=np.int32) * np.int32(zero)
    factors[: case.channels] = constants[FACTOR]
    return packed, starts, factors, np.full(pixel.shape, x_zero(signature) ^ flip, pixel.dtype)


def _packed_specs(signature: Signature) -> Specs:
    case = case_of(signature)
    channels = -(-case.channels // _LANES) * _LANES
    shapes = {"uint32": (case.taps, channels), "int32": (channels,), "float32": (channels,), "uint8": (case.channels,)}
    return tuple(TensorSpec(shape, np.dtype(dtype)) for dtype, shape in shapes.items())


def _bind(call: Binding) -> Thunk:
    args = conv_args(
        call, case_of(call.signature), _source(call.signature), call.x.ctypes.data, x_flip=flip_of(call.x.dtype)
    )
    step = Step(address("ops.quantised.depthwise_code", "convolve"), args)
    return Native((step,), (*call.inputs, *call.outputs, *call.packed))


DEPTHWISE = Kernel(
    "depthwise",
    _bind,
    contiguous=dense_parameters,
    reads=dense_pixels,
    pack=_pack,
    packed_specs=_packed_specs,
    unsupported=_unsupported,
    writes=dense_pixels,
    backend=NUMBA,
    unread_after_pack=dense_parameters,
)
"""One output for each channel; constant weights, factors and biases, one to three spatial dimensions, AVX-512."""
