"""The door to numba for batch normalization: one factor and one shift a channel, compiled on first use."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Compiled = Callable[..., None]


@cache
def scale_shift(dtype: np.dtype[Any]) -> Compiled:
    """f(x, factor, shift, y): y[n, c] = x[n, c] * factor[c] + shift[c], rounded once where a processor can.

    Dense arrays of that dtype: x and y (N, C, elements), at the same place or far from each other; factor and shift
    (C,). What is read may be read-only.
    """
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, array = numba.from_dtype(dtype), numba.types.Array
    read = (array(element, n, "C", readonly=True) for n in (3, 1, 1))
    signature = numba.void(*read, array(element, 3, "C"))
    compile_it = numba.njit(signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
    compiled: Compiled = compile_it(_scale_shift)
    return compiled


def _scale_shift(x: Array, factor: Array, shift: Array, y: Array) -> None:
    # A loop over one array alone: over two that may overlap, no vectors could be used where both are the same.
    inside = x.ctypes.data == y.ctypes.data
    for n in range(len(y)):
        for c in range(y.shape[1]):
            f, s, source, row = factor[c], shift[c], x[n, c], y[n, c]
            if inside:
                for i in range(len(row)):
                    row[i] = row[i] * f + s
            else:
                for i in range(len(row)):
                    row[i] = source[i] * f + s
