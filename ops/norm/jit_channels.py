"""The door to numba for batch normalization in training: sums over channels, and the data gradient, in few passes.

Batches of which sums are taken are flat, as `ops.common.batches.flat_images` gives them: channel c of image n begins at
n * pitch + c * elements.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Compiled = Callable[..., None]


def _compile(
    function: Compiled, dtype: np.dtype[Any], reads: Sequence[int], writes: Sequence[int], numbers: int
) -> Compiled:
    """`function` for dense arrays of so many dimensions each, read-only ones first, and a tuple of so many numbers."""
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, array = numba.from_dtype(dtype), numba.types.Array
    tuples: Any = numba.types.UniTuple
    read = (array(element, n, "C", readonly=True) for n in reads)
    written = (array(element, n, "C") for n in writes)
    signature = numba.void(*read, *written, *((tuples(numba.intp, numbers),) if numbers else ()))
    # "reassoc" lets the sum of a row have lanes; rows are added in float64, in order, so the bits are always the same.
    fast = {"contract", "reassoc"}
    compiled: Compiled = numba.njit(signature, nogil=True, cache=True, fastmath=fast, error_model="numpy")(function)
    return compiled


@cache
def channel_moments(dtype: np.dtype[Any]) -> Compiled:
    """f(x, mean, variance, (images, elements, pitch)): of each channel; the variance of all, not of a sample."""
    return _compile(_channel_moments, dtype, (1,), (1, 1), 3)


@cache
def channel_sums(dtype: np.dtype[Any]) -> Compiled:
    """f(x, dy, mean, factor, products, sums, (images, elements, pitch of x, of dy)): sums over each channel.

    Of (x - mean) * factor * dy, and of dy.
    """
    return _compile(_channel_sums, dtype, (1, 1, 1, 1), (1, 1), 4)


@cache
def combine_rows(dtype: np.dtype[Any]) -> Compiled:
    """f(x, dy, mean, of_x, middle, of_dy, y): y = (x - mean) * of_x + (dy - middle) * of_dy, one of each a channel.

    x, dy and y are (N, C, elements); y may be x or dy, or lie far from both.
    """
    return _compile(_combine_rows, dtype, (3, 3, 1, 1, 1, 1), (3,), 0)


def _channel_moments(x: Array, mean: Array, variance: Array, geometry: tuple[int, int, int]) -> None:
    # A row is summed in lanes of its own type, rows are added in float64.
    images, elements, pitch = geometry
    count = np.float64(images * elements)
    for c in range(len(mean)):
        total = 0.0
        for n in range(images):
            first = n * pitch + c * elements
            row, part = x[first : first + elements], x.dtype.type(0)
            for i in range(len(row)):
                part += row[i]
            total += part
        mean[c] = total / count
        middle, total = mean[c], 0.0
        for n in range(images):
            first = n * pitch + c * elements
            row, part = x[first : first + elements], x.dtype.type(0)
            for i in range(len(row)):
                part += (row[i] - middle) * (row[i] - middle)
            total += part
        variance[c] = total / count


def _channel_sums(  # noqa: PLR0917 - compiled code takes its columns one by one
    x: Array, dy: Array, mean: Array, factor: Array, products: Array, sums: Array, geometry: tuple[int, int, int, int]
) -> None:
    images, elements, pitch, other = geometry
    for c in range(len(mean)):
        middle, total, products_total = mean[c], 0.0, 0.0
        for n in range(images):
            at, there = n * pitch + c * elements, n * other + c * elements
            row, grad = x[at : at + elements], dy[there : there + elements]
            part, product = x.dtype.type(0), x.dtype.type(0)
            for i in range(len(row)):
                part += grad[i]
                product += (row[i] - middle) * grad[i]
            total += part
            products_total += product
        sums[c], products[c] = total, products_total * factor[c]


def _combine_rows(  # noqa: PLR0917 - compiled code takes its columns one by one
    x: Array, dy: Array, mean: Array, of_x: Array, middle: Array, of_dy: Array, y: Array
) -> None:
    # What is read where it is written is named by the same array: else no vectors could be used.
    over_x, over_dy = x.ctypes.data == y.ctypes.data, dy.ctypes.data == y.ctypes.data
    for n in range(len(y)):
        for c in range(y.shape[1]):
            a, b, d, e, row, grad, out = of_x[c], of_dy[c], mean[c], middle[c], x[n, c], dy[n, c], y[n, c]
            if over_x:
                for i in range(len(out)):
                    out[i] = (out[i] - d) * a + (grad[i] - e) * b
            elif over_dy:
                for i in range(len(out)):
                    out[i] = (row[i] - d) * a + (out[i] - e) * b
            else:
                for i in range(len(out)):
                    out[i] = (row[i] - d) * a + (grad[i] - e) * b
