"""The door to numba for the gradient of maximum pooling: where each maximum lies is found again, window by window."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, ...]


@cache
def scatter_maxima(dtype: np.dtype[Any]) -> Compiled:
    """f(dy, x, dx, best, places, geometry): adds each dy to dx where the window of x has its maximum.

    Of several maxima it is the first; a window with nothing above -infinity has none. Dense arrays: dy (channels,
    outputs...), x and dx (channels, sizes...), of three spatial dimensions; `best` and `places` (int32) have room for
    one row of windows in steps of one. The geometry is kernel, strides, dilations and begin pads, three each.
    """
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, array = numba.from_dtype(dtype), numba.types.Array
    read = (array(element, 4, "C", readonly=True) for _ in range(2))
    tuples: Any = numba.types.UniTuple
    scratch = array(element, 1, "C"), array(numba.int32, 1, "C")
    signature = numba.void(*read, array(element, 4, "C"), *scratch, tuples(numba.intp, 12))
    compiled: Compiled = numba.njit(signature, nogil=True, cache=True, error_model="numpy")(_scatter_maxima)
    return compiled


def _scatter_maxima(  # noqa: PLR0917 - compiled code takes its columns one by one
    dy: Array, x: Array, dx: Array, best: Array, places: Array, geometry: Geometry
) -> None:
    # Windows in steps of one along the row, tap by tap and without a branch, so that vectors can be used: those in
    # between cost less than to read every second pixel. Then every window of the true steps adds its dy.
    kd, kh, kw, sd, sh, sw, dd, dh, dw, bd, bh, bw = geometry
    depth, height, width = x.shape[1:]
    rows, span = dy.shape[2], len(best)
    dx[:] = 0
    for job in range(len(dy) * dy.shape[1] * rows):
        channel, a, b = job // (dy.shape[1] * rows), job // rows % dy.shape[1], job % rows
        best[:], places[:] = -np.inf, -1
        for tap in range(kd * kh * kw):
            i, j = a * sd - bd + tap // (kh * kw) * dd, b * sh - bh + tap // kw % kh * dh
            shift = tap % kw * dw - bw
            first, last = max(0, -shift), min(span, width - shift)
            if 0 <= i < depth and 0 <= j < height and first < last:
                base, row = np.int32((i * height + j) * width + first + shift), x[channel, i, j, first + shift :]
                top, place = best[first:last], places[first:last]
                for c in range(len(top)):
                    better = (row[c] > top[c]) | (row[c] != row[c]) | (place[c] < 0)  # NaN wins; something always does
                    top[c] = row[c] if better else top[c]
                    place[c] = base + np.int32(c) if better else place[c]
        out = dx[channel].reshape(depth * height * width)
        for c in range(dy.shape[3]):
            if places[c * sw] >= 0:
                out[places[c * sw]] += dy[channel, a, b, c]
