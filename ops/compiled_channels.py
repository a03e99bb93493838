"""The door to numba for batch normalization in training: sums over channels, and the data gradient, in few passes."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ops.spec import Array

Compiled = Callable[..., None]


def _compile(function: Compiled, dtype: np.dtype[Any], reads: Sequence[int], writes: Sequence[int]) -> Compiled:
    """`function` for dense arrays of so many dimensions each, read-only ones first."""
    import numba  # noqa: PLC0415 - half a second to load, and only these kernels want it

    element, array = numba.from_dtype(dtype), numba.types.Array
    read = (array(element, n, "C", readonly=True) for n in reads)
    written = (array(element, n, "C") for n in writes)
    signature = numba.void(*read, *written)
    # "reassoc" lets the sum of a row have lanes; rows are added in float64, in order, so the bits are always the same.
    fast = {"contract", "reassoc"}
    compiled: Compiled = numba.njit(signature, nogil=True, cache=True, fastmath=fast, error_model="numpy")(function)
    return compiled


@cache
def channel_moments(dtype: np.dtype[Any]) -> Compiled:
    """f(x, mean, variance): of each channel of x (N, C, elements); the variance is that of all, not of a sample."""
    return _compile(_channel_moments, dtype, (3,), (1, 1))


@cache
def channel_sums(dtype: np.dtype[Any]) -> Compiled:
    """f(x, dy, mean, factor, products, sums): sums of (x - mean) * factor * dy and of dy over each channel."""
    return _compile(_channel_sums, dtype, (3, 3, 1, 1), (1, 1))


@cache
def combine_rows(dtype: np.dtype[Any]) -> Compiled:
    """f(x, dy, mean, of_x, middle, of_dy, y): y = (x - mean) * of_x + (dy - middle) * of_dy, one of each a channel.

    x, dy and y are (N, C, elements); y may be x or dy, or lie far from both.
    """
    return _compile(_combine_rows, dtype, (3, 3, 1, 1, 1, 1), (3,))


def _channel_moments(x: Array, mean: Array, variance: Array) -> None:
    # A row is summed in lanes of its own type, rows are added in float64.
    count = np.float64(x.shape[0] * x.shape[2])
    for c in range(x.shape[1]):
        total = 0.0
        for n in range(x.shape[0]):
            row, part = x[n, c], x.dtype.type(0)
            for i in range(len(row)):
                part += row[i]
            total += part
        mean[c] = total / count
        middle, total = mean[c], 0.0
        for n in range(x.shape[0]):
            row, part = x[n, c], x.dtype.type(0)
            for i in range(len(row)):
                part += (row[i] - middle) * (row[i] - middle)
            total += part
        variance[c] = total / count


def _channel_sums(  # noqa: PLR0917 - compiled code takes its columns one by one
    x: Array, dy: Array, mean: Array, factor: Array, products: Array, sums: Array
) -> None:
    for c in range(x.shape[1]):
        middle, total, products_total = mean[c], 0.0, 0.0
        for n in range(x.shape[0]):
            row, grad = x[n, c], dy[n, c]
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
