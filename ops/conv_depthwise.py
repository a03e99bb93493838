"""Depthwise convolution in one or two dimensions: each channel has filters of its own, so there is no matrix."""

from functools import partial

import numpy as np

from ops.compiled_nn import depthwise
from ops.conv_shapes import ConvCase, case_of, compute_dtype
from ops.schema import Binding, Kernel, Signature, Thunk
from ops.spec import Shape


def _supports(signature: Signature) -> bool:
    case, dtype = case_of(signature), signature.x.dtype
    return case.group == case.channels and case.windows.ndim <= 2 and compute_dtype(dtype) == dtype


def _dense(_: Signature) -> tuple[int, ...]:
    return (0, 1, 2)


def _two(values: Shape, default: int) -> Shape:
    """One entry for each of two dimensions; a single one is that of the last."""
    return values if len(values) == 2 else (default, *values)


def _geometry(case: ConvCase) -> Shape:
    w = case.windows
    return *_two(w.strides, 1), *_two(w.dilations, 1), *_two(w.begins, 0)


def _bind(call: Binding) -> Thunk:
    case = case_of(call.signature)
    w = case.windows
    x = call.x.reshape((case.batch, case.channels, *_two(w.sizes, 1)))
    y = call.y.reshape((case.batch, case.out_channels, *_two(w.outputs, 1)))
    weights = call.inputs[1].reshape((case.out_channels, *_two(w.kernel, 1)))
    bias = call.inputs[2] if len(call.inputs) > 2 else np.zeros(case.out_channels, x.dtype)
    return partial(depthwise(x.dtype), x, weights, bias, y, _geometry(case))


DEPTHWISE = Kernel("depthwise", _bind, contiguous=_dense, supports=_supports)
"""As many groups as channels, one or two spatial dimensions: multiply and add row by row, no workspace."""
