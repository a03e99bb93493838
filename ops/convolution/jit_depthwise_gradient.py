"""The door to numba for the gradients of depthwise convolution: rows of one channel, multiplied and added tap by tap.

dy is laid out as far apart as the windows are, with zeros between: so rows are long, and read and written in order.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, ...]
Pair = tuple[Array, Array]


def _compile(function: Compiled, dtype: np.dtype[Any], reads: tuple[int, ...], writes: int) -> Compiled:
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, types = numba.from_dtype(dtype), numba.types
    tuples: Any = types.UniTuple
    read = (types.Array(element, n, "C", readonly=True) for n in reads)
    scratch = tuples(types.Array(element, 2, "C"), 2)
    signature = numba.void(*read, types.Array(element, writes, "C"), scratch, tuples(numba.intp, 8))
    # "reassoc" lets the sum of a row have lanes; the order is the same in every run.
    fast = {"contract", "reassoc"}
    compiled: Compiled = numba.njit(signature, nogil=True, cache=True, fastmath=fast, error_model="numpy")(function)
    return compiled


@cache
def depthwise_data(dtype: np.dtype[Any]) -> Compiled:
    """f(dy, w, bias, dx, (padded, apart), geometry) for dense arrays of that dtype.

    dy (N, M * C, OH, OW), w (M * C, taps), dx (N, C, H, W), bias (C,), which is added. `padded` (PH, PW) has room for
    a channel of dx with its padding, `apart` (OH, PW) for one of dy. The geometry is strides, dilations, begin pads and
    kernel, two each.
    """
    return _compile(_depthwise_data, dtype, (4, 2, 1), 4)


@cache
def depthwise_weights(dtype: np.dtype[Any]) -> Compiled:
    """f(x, dy, dw, (padded, apart), geometry): dw (M * C, taps); the others as for `depthwise_data`."""
    return _compile(_depthwise_weights, dtype, (4, 4), 2)


def _depthwise_data(  # noqa: PLR0917 - arrays that differ in type cannot share a tuple
    dy: Array, w: Array, bias: Array, dx: Array, scratch: Pair, geometry: Geometry
) -> None:
    sh, sw, dh, dw, ph, pw, _, kw = geometry
    padded, apart = scratch
    pitch, flat, grads = padded.shape[1], padded.reshape(padded.size), apart.reshape(apart.size)
    multiplier, span = dy.shape[1] // max(dx.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    apart[:] = 0
    for job in range(dx.shape[0] * dx.shape[1]):
        n, c = job // dx.shape[1], job % dx.shape[1]
        padded[:] = bias[c]
        for o in range(c * multiplier, (c + 1) * multiplier):
            apart[:, 0:span:sw] = dy[n, o]
            for step in range(w.shape[1] * runs):
                tap, run = step // runs, step % runs
                target = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, factor = grads[run * pitch :], w[o, tap]
                for i in range(len(target)):
                    target[i] += factor * source[i]
        dx[n, c] = padded[ph : ph + dx.shape[2], pw : pw + dx.shape[3]]


def _depthwise_weights(x: Array, dy: Array, weights: Array, scratch: Pair, geometry: Geometry) -> None:
    sh, sw, dh, dw, ph, pw, _, kw = geometry
    padded, apart = scratch
    pitch, flat, grads = padded.shape[1], padded.reshape(padded.size), apart.reshape(apart.size)
    multiplier, span = dy.shape[1] // max(x.shape[1], 1), (dy.shape[3] - 1) * sw + 1
    runs, length = (1, (dy.shape[2] - 1) * pitch + span) if sh == 1 else (dy.shape[2], span)
    apart[:], padded[:], weights[:] = 0, 0, 0
    for job in range(x.shape[0] * x.shape[1]):
        n, c = job // x.shape[1], job % x.shape[1]
        padded[ph : ph + x.shape[2], pw : pw + x.shape[3]] = x[n, c]
        for o in range(c * multiplier, (c + 1) * multiplier):
            apart[:, 0:span:sw] = dy[n, o]
            for step in range(weights.shape[1] * runs):
                tap, run = step // runs, step % runs
                pixels = flat[(run * sh + tap // kw * dh) * pitch + tap % kw * dw :][:length]
                source, total = grads[run * pitch :], x.dtype.type(0)
                for i in range(len(pixels)):
                    total += pixels[i] * source[i]
                weights[o, tap] += total
