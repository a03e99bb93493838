"""The door to numba for depthwise convolution in planes: rows of a padded channel, compiled on first use."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, int, int, int, int, int, int, int]
Pair = tuple[Array, Array]


@cache
def depthwise(dtype: np.dtype[Any]) -> Compiled:
    """f(x, w, bias, y, (padded, sums), geometry, (low, high)) for dense arrays of that dtype.

    x (N, C, H, W), y (N, M * C, OH, OW), w (M * C, taps), bias (M * C,). `padded` (PH, PW) has room for one channel
    with its zeros around, `sums` (rows, PW) for some rows of it: one row where the first stride is not 1. The geometry
    is strides, dilations, begin pads and kernel, two each. What is read may be read-only, as constants are. Results are
    held between two floats, which may be infinite; NaN stays NaN.
    """
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, types = numba.from_dtype(dtype), numba.types
    tuples: Any = types.UniTuple
    read = (types.Array(element, n, "C", readonly=True) for n in (4, 2, 1))
    written, scratch = types.Array(element, 4, "C"), tuples(types.Array(element, 2, "C"), 2)
    signature = numba.void(*read, written, scratch, tuples(numba.intp, 8), tuples(element, 2))
    # "contract" lets a multiplication and an addition become one instruction; nothing is reordered.
    compile_it = numba.njit(signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
    compiled: Compiled = compile_it(_depthwise)
    return compiled


def _depthwise(  # noqa: PLR0917 - arrays that differ in type cannot share a tuple
    x: Array, w: Array, bias: Array, y: Array, scratch: Pair, geometry: Geometry, limits: tuple[Any, Any]
) -> None:
    # Rows that follow each other in `padded` are summed as one long row: short rows would fill no vector register.
    sh, sw, dh, dw, ph, pw, kh, kw = geometry
    (padded, sums), (low, high) = scratch, limits
    outputs, rows, reach = y.shape[1], y.shape[2], (y.shape[3] - 1) * sw + 1
    height, width = max(0, min(x.shape[2], padded.shape[0] - ph)), max(0, min(x.shape[3], padded.shape[1] - pw))
    pitch, flat, total = padded.shape[1], padded.reshape(padded.size), sums.reshape(sums.size)
    padded[:] = 0
    for job in range(y.shape[0] * outputs):
        n, o = job // outputs, job % outputs
        padded[ph : ph + height, pw : pw + width] = x[n, o * x.shape[1] // outputs, :height, :width]
        for first in range(0, rows, sums.shape[0]):
            some = min(sums.shape[0], rows - first)
            row = total[: (some - 1) * pitch + reach]
            row[:] = bias[o]
            for tap in range(kh * kw % 3):
                factor, pixels = w[o, tap], flat[(first * sh + tap // kw * dh) * pitch + tap % kw * dw :]
                for j in range(len(row)):
                    row[j] += factor * pixels[j]
            for tap in range(kh * kw % 3, kh * kw, 3):
                f, g, h = w[o, tap], w[o, tap + 1], w[o, tap + 2]
                p = flat[(first * sh + tap // kw * dh) * pitch + tap % kw * dw :]
                q = flat[(first * sh + (tap + 1) // kw * dh) * pitch + (tap + 1) % kw * dw :]
                r = flat[(first * sh + (tap + 2) // kw * dh) * pitch + (tap + 2) % kw * dw :]
                for j in range(len(row)):
                    row[j] += f * p[j] + g * q[j] + h * r[j]
            for i in range(some):
                for j in range(y.shape[3]):
                    found = row[i * pitch + j * sw]
                    found = low if found < low else found
                    y[n, o, first + i, j] = high if found > high else found
