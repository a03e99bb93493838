"""Depthwise convolution in one or two dimensions: each channel has filters of its own, so there is no matrix."""

import math

import numpy as np

from allocator.machine_code.door import address
from ops.common.batches import by_image, dense_images
from ops.common.windows import Windows
from ops.convolution.args import PLANES
from ops.convolution.shapes import case_of, planar, planar_geometry
from ops.native.call import Native, native_call
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, contiguous_at, unless
from ops.tensor.spec import Array, TensorSpec, compute_dtype

UNBOUNDED = (-math.inf, math.inf)
_SUMS = 1024
"""Elements that are summed at a time: 4 KiB of sums and a few rows of pixels fit into a first-level cache."""


def supports_depthwise(signature: Signature) -> bool:
    """Returns whether there are as many groups as channels, one or two spatial dimensions, and float32 or float64."""
    case, dtype = case_of(signature), signature.x.dtype
    return case.group == case.channels and case.windows.ndim <= 2 and compute_dtype(dtype) == dtype


_not_depthwise = unless(
    supports_depthwise, "not one group for each channel, or more than two spatial dimensions, or float16"
)


def depthwise_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of one channel with its padding, and of sums of some of its rows."""
    w = case_of(signature).windows
    reach = planar(tuple(w.reach(a, n) for a, n in enumerate(w.outputs)), 1)
    rows = max(1, min(planar(w.outputs, 1)[0], _SUMS // reach[1])) if planar(w.strides, 1)[0] == 1 else 1
    return signature.x.with_shape(reach), signature.x.with_shape((rows, reach[1]))


def bind_depthwise(call: Binding, limits: tuple[float, float] = UNBOUNDED) -> Thunk:
    """Returns the call; results are clipped to the limits (low, high)."""
    case = case_of(call.signature)
    w = case.windows
    x = call.x.reshape((case.batch, case.channels, *planar(w.sizes, 1)))
    y = call.y.reshape((case.batch, case.out_channels, *planar(w.outputs, 1)))
    weights = call.inputs[1].reshape((case.out_channels, case.taps))
    bias = call.inputs[2] if len(call.inputs) > 2 else np.zeros(case.out_channels, x.dtype)
    scratch = call.temporaries

    def bind(x: Array, y: Array) -> Thunk:
        return planes_call("convolve", (x, weights, bias, y), scratch, w, limits=limits)

    return by_image(bind, x, y)


def planes_call(
    name: str,
    arrays: tuple[Array, Array, Array, Array],
    scratch: tuple[Array, ...],
    w: Windows,
    *,
    limits: tuple[float, float] = UNBOUNDED,
) -> Native:
    """Returns a call of compiled code over planes: x (N, C, H, W), weights, bias and y, or the gradients of some.

    `scratch` are one channel with its padding, and rows of sums or of dy.
    """
    (x, weights, bias, y), (padded, rows) = arrays, scratch
    return native_call(
        address("ops.convolution.depthwise_code", f"{name}_{x.dtype.name}"),
        PLANES,
        x=x,
        weights=weights,
        bias=bias,
        y=y,
        padded=padded,
        rows=rows,
        x_shape=x.shape,
        y_shape=y.shape,
        padded_shape=padded.shape,
        rows_shape=rows.shape,
        geometry=planar_geometry(w),
        low=limits[0],
        high=limits[1],
    )


DEPTHWISE = Kernel(
    "depthwise",
    bind_depthwise,
    depthwise_temporaries,
    contiguous=contiguous_at(1, 2),
    reads=dense_images,
    unsupported=_not_depthwise,
    writes=dense_images,
    backend=NUMBA,
)
"""As many groups as channels, one or two spatial dimensions: multiply and add rows of one padded channel."""
