"""Kernels for the gradients of depthwise convolution in one or two dimensions, and for its transpose."""

from functools import partial

import numpy as np

from ops.common.windows import Windows
from ops.convolution.jit_depthwise_gradient import depthwise_data, depthwise_weights
from ops.convolution.shapes import planar
from ops.schema.schema import Binding, Thunk
from ops.schema.workspace import carve, dense_bytes
from ops.tensor.spec import Array, Shape, TensorSpec, compute_dtype


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
    held = carve(call.workspace, *scratch_specs(call.signature.x, w))
    run, filters = depthwise_data(dy.dtype), weights.reshape((len(weights), -1))
    return partial(run, _flat(dy, w.outputs), filters, bias, _flat(dx, w.sizes), held, _geometry(w))


def bind_depthwise_weights(call: Binding, w: Windows) -> Thunk:
    """Returns the call that computes the gradient of the filters from x and dy, inputs 0 and 1."""
    x, dy = call.inputs
    held, filters = carve(call.workspace, *scratch_specs(call.signature.x, w)), call.y.reshape((len(call.y), -1))
    return partial(depthwise_weights(x.dtype), _flat(x, w.sizes), _flat(dy, w.outputs), filters, held, _geometry(w))


def scratch_bytes(like: TensorSpec, w: Windows) -> int:
    """Returns the bytes of the scratch arrays."""
    return dense_bytes(*scratch_specs(like, w))
