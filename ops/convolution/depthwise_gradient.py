"""Kernels for the gradients of depthwise convolution in one or two dimensions, and for its transpose."""

import math

import numpy as np

from ops.common.windows import Windows
from ops.convolution.args import PLANES
from ops.convolution.shapes import planar
from ops.native.call import Native, Step
from ops.native.door import CONTRACT, address
from ops.native.records import pack_args
from ops.schema.schema import Binding, Thunk
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.spec import Array, Shape, TensorSpec, compute_dtype

_ANY_ORDER = (*CONTRACT, "reassoc")
"""The sum of a row may have lanes; they are added in the same order in every run."""


def _geometry(w: Windows) -> Shape:
    """Returns strides, dilations, begin pads and kernel, two of each."""
    return *planar(w.strides, 1), *planar(w.dilations, 1), *planar(w.begins, 0), *planar(w.kernel, 1)


def scratch_specs(like: TensorSpec, w: Windows) -> tuple[TensorSpec, TensorSpec]:
    """Returns one channel with its padding, and one channel of dy whose rows are as long as padded ones."""
    pads = zip(w.begins, w.sizes, strict=True)
    padded = planar(tuple(max(b + n, w.reach(a, w.outputs[a])) for a, (b, n) in enumerate(pads)), 1)
    return like.with_shape(padded), like.with_shape((planar(w.outputs, 1)[0], padded[1]))


def is_depthwise(x: TensorSpec, group: int, channels: int, w: Windows) -> bool:
    """Tells whether each channel under the windows has filters of its own, of a type and shape that are compiled."""
    return 1 < group == channels and w.ndim <= 2 and compute_dtype(x.dtype) == x.dtype and x.size > 0


def _flat(array: Array, sizes: Shape) -> Array:
    return array.reshape((*array.shape[:2], *planar(sizes, 1)))


def bind_depthwise_data(call: Binding, w: Windows) -> Thunk:
    """Returns the transposed convolution of inputs 0 and 1 (and a bias, input 2); its windows lie over the output."""
    dy, weights, dx = call.x, call.inputs[1], call.y
    bias = call.inputs[2] if len(call.inputs) > 2 else np.zeros(dx.shape[1], dx.dtype)
    return _gradient("data_gradient", call, w, (_flat(dx, w.sizes), weights, bias, _flat(dy, w.outputs)))


def bind_depthwise_weights(call: Binding, w: Windows) -> Thunk:
    """Returns the call that computes the gradient of the filters from x and dy, inputs 0 and 1."""
    x, dy = call.inputs
    return _gradient("weight_gradient", call, w, (_flat(x, w.sizes), call.y, call.y, _flat(dy, w.outputs)))


def _gradient(name: str, call: Binding, w: Windows, arrays: tuple[Array, Array, Array, Array]) -> Native:
    """Returns the call for x, weights, bias (any array if it is not read) and y, or their gradients."""
    x, weights, bias, y = arrays
    padded, rows = carve(call.workspace, *scratch_specs(call.signature.x, w))
    args = pack_args(
        PLANES,
        x=x.ctypes.data,
        weights=weights.ctypes.data,
        bias=bias.ctypes.data,
        y=y.ctypes.data,
        padded=padded.ctypes.data,
        rows=rows.ctypes.data,
        x_shape=x.shape,
        y_shape=y.shape,
        padded_shape=padded.shape,
        rows_shape=rows.shape,
        geometry=_geometry(w),
        low=-math.inf,
        high=math.inf,
    )
    step = Step(address("ops.convolution.depthwise_code", f"{name}_{x.dtype.name}", _ANY_ORDER), args)
    return Native((step,), (*arrays, padded, rows))


def scratch_bytes(like: TensorSpec, w: Windows) -> int:
    """Returns the bytes of the scratch arrays."""
    return dense_bytes(*scratch_specs(like, w))
