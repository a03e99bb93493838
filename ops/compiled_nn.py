"""The door to numba for neural-network kernels: loops that numpy has no call for, compiled on first use."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.spec import Array

Compiled = Callable[..., None]
Geometry = tuple[int, int, int, int, int, int]


@cache
def depthwise(dtype: np.dtype[Any]) -> Compiled:
    """f(x, w, bias, y, geometry) for dense arrays of that dtype.

    x (N, C, H, W), w (M * C, kh, kw), bias (M * C,), y (N, M * C, OH, OW). The geometry is strides, dilations and begin
    pads, two each.
    """
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element = numba.from_dtype(dtype)
    types: Any = numba.types
    read = (types.Array(element, n, "C", readonly=True) for n in (4, 3, 1))
    signature = numba.void(*read, types.Array(element, 4, "C"), types.UniTuple(numba.intp, 6))
    # "contract" lets a multiplication and an addition become one instruction; nothing is reordered.
    compile_it = numba.njit(signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
    compiled: Compiled = compile_it(_depthwise)
    return compiled


def _depthwise(x: Array, w: Array, bias: Array, y: Array, geometry: Geometry) -> None:
    sh, sw, dh, dw, ph, pw = geometry
    batch, channels, height, width = x.shape
    filters, kh, kw = w.shape
    for n in range(batch):
        for o in range(filters):
            image, out = x[n, o * channels // filters], y[n, o]
            for i in range(out.shape[0]):
                row = out[i]
                row[:] = bias[o]
                for a in range(kh):
                    h = i * sh - ph + a * dh
                    if h < 0 or h >= height:
                        continue
                    for b in range(kw):
                        shift, factor = b * dw - pw, w[o, a, b]
                        low = max(0, -(shift // sw))
                        high = max(low, min(len(row), (width - 1 - shift) // sw + 1))
                        part, pixels = row[low:high], image[h, low * sw + shift :]
                        if sw == 1:
                            for j in range(len(part)):
                                part[j] += factor * pixels[j]
                        else:
                            for j in range(len(part)):
                                part[j] += factor * pixels[j * sw]
