"""The door to numba for the gradient of maximum pooling: where each maximum lies is found again, window by window."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, ...]


@cache
def scatter_maxima(dtype: np.dtype[Any]) -> Compiled:
    """f(dy, x, dx, geometry): adds each dy to dx where the window of x has its maximum; the first one of several.

    Dense arrays: dy (channels, outputs...), x and dx (channels, sizes...), of three spatial dimensions. The geometry is
    kernel, strides, dilations and begin pads, three each.
    """
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, array = numba.from_dtype(dtype), numba.types.Array
    read = (array(element, 4, "C", readonly=True) for _ in range(2))
    tuples: Any = numba.types.UniTuple
    signature = numba.void(*read, array(element, 4, "C"), tuples(numba.intp, 12))
    compiled: Compiled = numba.njit(signature, nogil=True, cache=True, error_model="numpy")(_scatter_maxima)
    return compiled


def _scatter_maxima(dy: Array, x: Array, dx: Array, geometry: Geometry) -> None:
    kd, kh, kw, sd, sh, sw, dd, dh, dw, bd, bh, bw = geometry
    depth, height, width = x.shape[1:]
    rows, columns = dy.shape[2], dy.shape[3]
    dx[:] = 0
    for channel in range(len(dy)):
        image, out = x[channel], dx[channel].reshape(depth * height * width)
        for place in range(dy.shape[1] * rows * columns):
            a, b, c = place // (rows * columns), place // columns % rows, place % columns
            best, found = -np.inf, -1
            for i in range(a * sd - bd, min(a * sd - bd + kd * dd, depth), dd):
                for j in range(b * sh - bh, min(b * sh - bh + kh * dh, height), dh):
                    for k in range(c * sw - bw, min(c * sw - bw + kw * dw, width), dw):
                        if min(i, j, k) >= 0 and (found < 0 or image[i, j, k] > best):
                            best, found = image[i, j, k], (i * height + j) * width + k
            if found >= 0:
                out[found] += dy[channel, a, b, c]
