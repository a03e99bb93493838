"""Depthwise convolution in one or two dimensions: each channel has filters of its own, so there is no matrix."""

from functools import partial

import numpy as np

from ops.compiled_nn import depthwise
from ops.conv_shapes import case_of, compute_dtype, planar
from ops.schema import Binding, Kernel, Signature, Thunk, all_contiguous
from ops.spec import TensorSpec
from ops.workspace import carve, dense_bytes

_SUMS = 1024
"""Elements that are summed at a time, so that they stay in the first-level cache."""


def _supports(signature: Signature) -> bool:
    case, dtype = case_of(signature), signature.x.dtype
    return case.group == case.channels and case.windows.ndim <= 2 and compute_dtype(dtype) == dtype


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """One channel with its padding, and sums of some rows of it."""
    w = case_of(signature).windows
    reach = planar(tuple(w.reach(a, n) for a, n in enumerate(w.outputs)), 1)
    rows = max(1, min(planar(w.outputs, 1)[0], _SUMS // reach[1])) if planar(w.strides, 1)[0] == 1 else 1
    return signature.x.with_shape(reach), signature.x.with_shape((rows, reach[1]))


def _workspace(signature: Signature) -> int:
    return dense_bytes(*_temporaries(signature))


def _bind(call: Binding) -> Thunk:
    case = case_of(call.signature)
    w = case.windows
    x = call.x.reshape((case.batch, case.channels, *planar(w.sizes, 1)))
    y = call.y.reshape((case.batch, case.out_channels, *planar(w.outputs, 1)))
    weights = call.inputs[1].reshape((case.out_channels, case.taps))
    bias = call.inputs[2] if len(call.inputs) > 2 else np.zeros(case.out_channels, x.dtype)
    padded, sums = carve(call.workspace, *_temporaries(call.signature))
    return partial(depthwise(x.dtype), x, weights, bias, y, (padded, sums), case.geometry)


DEPTHWISE = Kernel("depthwise", _bind, _workspace, contiguous=all_contiguous, supports=_supports)
"""As many groups as channels, one or two spatial dimensions: multiply and add rows of one padded channel."""
