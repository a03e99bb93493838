"""Rows brought to mean 0 and variance 1, a few at a time so that all passes over them find them in the cache."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.schema.schema import Binding, Signature, Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec, compute_dtype

Scale = Callable[[Array, tuple[Array, ...], int, int], tuple[Thunk, ...]]
"""Steps that scale and shift rows [first, last) of each image in place, given scale and shift: f(rows, them, a, b)."""


@frozen(eq=False)
class RowNorm:
    """x seen as (images, rows, width): each row is divided by its standard deviation (or its root mean square)."""

    images: int
    rows: int
    width: int
    epsilon: float
    centred: bool
    scale: Scale


def _few(norm: RowNorm, dtype: np.dtype[Any]) -> int:
    return max(1, min(norm.rows, CACHE_BYTES // max(norm.width * dtype.itemsize, 1)))


def row_norm_temporaries(norm: RowNorm, signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of means and factors of a few rows.

    For float16 there are also these rows, scale and shift, in float32.
    """
    dtype = compute_dtype(signature.x.dtype)
    few = _few(norm, dtype)
    wide = few * norm.width if dtype != signature.x.dtype else 0
    shapes = [s.shape if wide else (0,) for s in signature.inputs[1:]]
    return tuple(TensorSpec(s, dtype) for s in ((few, 1), (few, 1), (wide,), *shapes))


def _mean_of_squares(rows: Array, out: Array) -> Iterator[Thunk]:
    """Yields steps that write the mean of the squares of each row: (rows, width) to (rows, 1)."""
    yield partial(np.matmul, rows[:, np.newaxis, :], rows[:, :, np.newaxis], out[:, :, np.newaxis])
    yield partial(np.divide, out, constant(rows.shape[1], out.dtype), out)


def _normalize(norm: RowNorm, x: Array, y: Array, mean: Array, factor: Array) -> Iterator[Thunk]:
    if norm.centred:
        yield partial(np.add.reduce, x, axis=1, keepdims=True, out=mean)
        yield partial(np.divide, mean, constant(norm.width, mean.dtype), mean)
        yield partial(np.subtract, x, mean, y)
        x = y
    yield from _mean_of_squares(x, factor)
    yield partial(np.add, factor, constant(norm.epsilon, factor.dtype), factor)
    yield partial(np.sqrt, factor, factor)
    yield partial(np.reciprocal, factor, factor)
    yield partial(np.multiply, x, factor, y)


def _statistics(call: Binding, rows: slice, statistics: tuple[Array, ...]) -> Iterator[Thunk]:
    for out, values in zip(call.outputs[1:], statistics, strict=False):
        yield partial(np.copyto, out.reshape((-1, 1))[rows], values, casting="same_kind")


def bind_row_norm(norm: RowNorm, call: Binding) -> Thunk:
    """Returns the thunk that normalizes x into y; further outputs take means and reciprocal deviations."""
    means, factors, wide, *scratch = call.temporaries
    shape = (norm.images, norm.rows, norm.width)
    x, y = call.x.reshape(shape), call.y.reshape(shape)
    parameters = call.inputs[1:]
    steps: list[Thunk] = []
    if wide.size:
        steps += [partial(np.copyto, buffer, value) for buffer, value in zip(scratch, parameters, strict=True)]
        parameters = tuple(scratch)
    for image in range(norm.images):
        for a, b in pieces(norm.rows, _few(norm, means.dtype)):
            mean, factor, source, out = means[: b - a], factors[: b - a], x[image, a:b], y[image, a:b]
            if wide.size:
                out = wide[: math.prod(source.shape)].reshape(source.shape)
                steps.append(partial(np.copyto, out, source))
                source = out
            steps += _normalize(norm, source, out, mean, factor)
            steps += _statistics(call, slice(image * norm.rows + a, image * norm.rows + b), (mean, factor))
            steps += norm.scale(out, parameters, a, b)
            if wide.size:
                steps.append(partial(np.copyto, y[image, a:b], out, casting="same_kind"))
    return in_turn(*steps)
