"""Kernels of batch normalization in numpy: passes over a few channels of one image, which stay in the cache."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.boxes import CACHE_BYTES, pieces
from ops.schema.schema import Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec

_DOUBLE = np.dtype("float64")
Sums = tuple[Array, Array, Array]
"""A piece of the data, the sum of each of its rows, and the same in float64."""


def piece_channels(x: TensorSpec) -> int:
    """Returns the number of channels of one piece."""
    width = math.prod(x.shape[2:]) * x.dtype.itemsize
    return max(1, min(x.shape[1], CACHE_BYTES // 2 // max(width, 1)))


def piece_spec(x: TensorSpec) -> TensorSpec:
    """Returns the spec of a piece of x: (channels, elements)."""
    return x.with_shape((piece_channels(x), math.prod(x.shape[2:])))


def sums_specs(x: TensorSpec) -> tuple[TensorSpec, ...]:
    """Returns the specs of the temporaries of sums over channels.

    They are a piece, row sums, the same in float64, and a total a channel.
    """
    piece = piece_spec(x)
    rows = piece.with_shape(piece.shape[:1])
    return piece, rows, rows.with_dtype(_DOUBLE), TensorSpec((x.shape[1],), _DOUBLE)


def flat_channels(array: Array) -> Array:
    """Returns (N, C, ...) as (N, C, elements)."""
    return array.reshape((*array.shape[:2], math.prod(array.shape[2:])))


def _cut(x: Array, most: int) -> Iterator[tuple[int, int, int]]:
    for n in range(len(x)):
        for a, b in pieces(x.shape[1], most):
            yield n, a, b


def _add_rows(rows: Array, sums: Sums, total: Array) -> Iterator[Thunk]:
    """Yields steps that add the sum of each row to `total`: rows in their own type, in pairs, then in float64."""
    _, part, wide = (s[: len(rows)] for s in sums)
    yield partial(np.add.reduce, rows, 1, None, part)
    yield partial(np.copyto, wide, part)
    yield partial(np.add, total, wide, total)


def _column(row: Array) -> Array:
    return row.reshape(-1, 1)


def mean_steps(x: Array, mean: Array, sums: Sums, total: Array) -> Iterator[Thunk]:
    """Yields steps that write the mean of each channel of x (N, C, elements)."""
    yield partial(total.fill, 0)
    for n, a, b in _cut(x, len(sums[0])):
        yield from _add_rows(x[n, a:b], sums, total[a:b])
    yield partial(np.divide, total, constant(max(x.size // max(x.shape[1], 1), 1), _DOUBLE), total)
    yield partial(np.copyto, mean, total, casting="same_kind")


def variance_steps(x: Array, mean: Array, variance: Array, sums: Sums, total: Array) -> Iterator[Thunk]:
    """Yields steps that write the variance of each channel of x: the sum of squares is divided by n, not by n - 1."""
    yield partial(total.fill, 0)
    for n, a, b in _cut(x, len(sums[0])):
        piece = sums[0][: b - a]
        yield partial(np.subtract, x[n, a:b], _column(mean[a:b]), piece)
        yield partial(np.square, piece, piece)
        yield from _add_rows(piece, sums, total[a:b])
    yield partial(np.divide, total, constant(max(x.size // max(x.shape[1], 1), 1), _DOUBLE), total)
    yield partial(np.copyto, variance, total, casting="same_kind")


def product_steps(data: tuple[Array, Array], mean: Array, products: Array, sums: Sums, total: Array) -> Iterator[Thunk]:
    """Yields steps that write the sum of (x - mean) * dy over each channel; `data` are x and dy."""
    x, dy = data
    yield partial(total.fill, 0)
    for n, a, b in _cut(x, len(sums[0])):
        piece = sums[0][: b - a]
        yield partial(np.subtract, x[n, a:b], _column(mean[a:b]), piece)
        yield partial(np.multiply, piece, dy[n, a:b], piece)
        yield from _add_rows(piece, sums, total[a:b])
    yield partial(np.copyto, products, total, casting="same_kind")


def sum_steps(dy: Array, result: Array, sums: Sums, total: Array) -> Iterator[Thunk]:
    """Yields steps that write the sum of dy over each channel."""
    yield partial(total.fill, 0)
    for n, a, b in _cut(dy, len(sums[0])):
        yield from _add_rows(dy[n, a:b], sums, total[a:b])
    yield partial(np.copyto, result, total, casting="same_kind")


def scale_shift_steps(x: Array, factor: Array, shift: Array, y: Array, most: int) -> Iterator[Thunk]:
    """Yields steps that write y = x * factor + shift, with one factor and one shift a channel; y may be x."""
    for n, a, b in _cut(x, most):
        out = y[n, a:b]
        yield partial(np.multiply, x[n, a:b], _column(factor[a:b]), out)
        yield partial(np.add, out, _column(shift[a:b]), out)


def combine_steps(
    data: tuple[Array, Array, Array], of_x: tuple[Array, Array], of_dy: tuple[Array, Array], piece: Array
) -> Iterator[Thunk]:
    """Yields steps that write y = (x - mean) * factor + (dy - middle) * slope; `data` are x, dy and y.

    y may be x or dy. `of_x` are mean and factor, `of_dy` are middle and slope, one of each a channel.
    """
    x, dy, y = data
    (mean, factor), (middle, slope) = of_x, of_dy
    for n, a, b in _cut(x, len(piece)):
        part, out = piece[: b - a], y[n, a:b]
        yield partial(np.subtract, x[n, a:b], _column(mean[a:b]), part)
        yield partial(np.multiply, part, _column(factor[a:b]), part)
        yield partial(np.subtract, dy[n, a:b], _column(middle[a:b]), out)
        yield partial(np.multiply, out, _column(slope[a:b]), out)
        yield partial(np.add, out, part, out)
