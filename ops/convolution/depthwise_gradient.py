"""Kernels for the gradients of depthwise convolution in one or two dimensions, and for its transpose."""

from collections.abc import Callable

import numpy as np

from ops.common.windows import Windows
from ops.convolution.depthwise import planes_call
from ops.convolution.shapes import planar
from ops.native.call import Native
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, all_contiguous, unless
from ops.tensor.spec import Array, Shape, TensorSpec, compute_dtype

_REASON = "not one group for each channel, or more than two spatial dimensions, or float16"


def _scratch_specs(like: TensorSpec, w: Windows) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of one channel with its padding, and of one channel of dy with rows of that length."""
    pads = zip(w.begins, w.sizes, strict=True)
    padded = planar(tuple(max(b + n, w.reach(a, w.outputs[a])) for a, (b, n) in enumerate(pads)), 1)
    return like.with_shape(padded), like.with_shape((planar(w.outputs, 1)[0], padded[1]))


def depthwise_kernel(
    bind: Callable[[Binding, Windows], Thunk], form: Callable[[Signature], tuple[int, int, Windows]]
) -> Kernel:
    """Returns the compiled kernel of calls in which each channel under the windows has filters of its own.

    `form` gives the groups, the channels under the windows, and the windows.
    """

    def supports(signature: Signature) -> bool:
        (group, channels, w), x = form(signature), signature.x
        return 1 < group == channels and w.ndim <= 2 and compute_dtype(x.dtype) == x.dtype and x.size > 0

    return Kernel(
        "depthwise",
        lambda call: bind(call, form(call.signature)[2]),
        lambda signature: _scratch_specs(signature.x, form(signature)[2]),
        contiguous=all_contiguous,
        unsupported=unless(supports, _REASON),
        backend=NUMBA,
    )


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
    return planes_call(name, arrays, call.temporaries, w)
