"""The gradients of layer, RMS, instance and group normalization, a few rows at a time, so that they stay in the cache.

With n = (x - mean) * f, f = 1 / sqrt(variance + epsilon) and g = dy * scale, each over one row of x,
dx = f * (g - mean(g) - n * mean(g * n)) (Ba, Kiros and Hinton 2016); RMS normalization has no means to subtract.
Means and factors are computed again: to find them takes two passes over rows that are read anyway.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.schema.schema import Binding, Signature, Specs, Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import Array, Shape, TensorSpec, compute_dtype, normalize_axis


@frozen(eq=False)
class RowCase:
    """x seen as (images, rows, width); a row is `each` channels of `width / each` elements, or all scales in turn."""

    images: int
    rows: int
    width: int
    each: int
    dtype: np.dtype[Any]
    epsilon: float
    centred: bool

    @classmethod
    def of(cls, signature: Signature) -> "RowCase":
        """Returns the case of inputs dy, x; where `num_groups` is 0, the dimensions from `axis` on are one row."""
        shape, attrs = signature.inputs[1].shape, signature.attrs
        dtype, groups = compute_dtype(signature.x.dtype), attrs["num_groups"]
        more = {"dtype": dtype, "epsilon": attrs["epsilon"], "centred": attrs["centred"]}
        if groups:
            each = shape[1] // groups
            return cls(shape[0], groups, each * math.prod(shape[2:]), each, **more)
        axis = normalize_axis(attrs["axis"], len(shape))
        return cls(1, math.prod(shape[:axis]), math.prod(shape[axis:]), 0, **more)

    @property
    def few(self) -> int:
        """Returns the number of rows of one piece."""
        return max(1, min(self.rows, CACHE_BYTES // 2 // max(self.width * self.dtype.itemsize, 1)))

    @property
    def cut(self) -> list[tuple[int, int, int]]:
        """Returns image, first row and end of the rows of each piece."""
        return [(n, a, b) for n in range(self.images) for a, b in pieces(self.rows, self.few)]

    @property
    def shape(self) -> Shape:
        """Returns the numbers of images and of rows, and the elements of a row."""
        return self.images, self.rows, self.width


def temporaries(case: RowCase) -> tuple[TensorSpec, ...]:
    """Returns the specs of normalized rows, of gradients of rows, and of three numbers a row."""
    buffer, column = TensorSpec((case.few, case.width), case.dtype), TensorSpec((case.few, 1), case.dtype)
    return buffer, buffer, column, column, column


def data_temporaries(signature: Signature) -> Specs:
    """Returns the specs of the temporaries for the gradient of x."""
    case = RowCase.of(signature)
    scale = TensorSpec(signature.inputs[2].shape if case.dtype != signature.x.dtype else (0,), case.dtype)
    return *temporaries(case), scale


def scale_temporaries(signature: Signature) -> Specs:
    """Returns the specs of the temporaries for the gradient of the scale."""
    case = RowCase.of(signature)
    return *temporaries(case), *_sums(case, signature)


def _sums(case: RowCase, signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of the sums of a piece, and for float16 also of the sums of all rows."""
    total = signature.y.with_dtype(case.dtype)
    few = (case.few * case.each,) if case.each else (case.width,)
    return total.with_shape(few), total if case.dtype != signature.x.dtype else total.with_shape((0,))


def _dot(a: Array, b: Array, out: Array) -> Iterator[Thunk]:
    """Yields steps that write, for each row of a and b, the mean of the products of their elements."""
    yield partial(np.matmul, a[:, np.newaxis, :], b[:, :, np.newaxis], out[:, :, np.newaxis])
    yield partial(np.divide, out, constant(max(a.shape[1], 1), out.dtype), out)


def _mean(rows: Array, out: Array) -> Iterator[Thunk]:
    yield partial(np.add.reduce, rows, axis=1, keepdims=True, out=out)
    yield partial(np.divide, out, constant(max(rows.shape[1], 1), out.dtype), out)


def _normalize(case: RowCase, x: Array, buffer: Array, mean: Array, factor: Array) -> Iterator[Thunk]:
    """Yields steps that write normalized rows into the buffer, and the factor of each row."""
    yield partial(np.copyto, buffer, x)
    if case.centred:
        yield from _mean(buffer, mean)
        yield partial(np.subtract, buffer, mean, buffer)
    yield from _dot(buffer, buffer, factor)
    yield partial(np.add, factor, constant(case.epsilon, factor.dtype), factor)
    yield partial(np.sqrt, factor, factor)
    yield partial(np.reciprocal, factor, factor)
    yield partial(np.multiply, buffer, factor, buffer)


def _scale(case: RowCase, rows: Array, scale: Array, a: int, b: int) -> Thunk:
    """Returns the step that multiplies rows a to b of an image by the scale."""
    if case.each:
        channels = rows.reshape(((b - a) * case.each, -1)) if rows.size else rows
        return partial(np.multiply, channels, scale[a * case.each : b * case.each].reshape((-1, 1)), channels)
    return partial(np.multiply, rows, scale.reshape(case.width), rows)


def _data_piece(
    case: RowCase, arrays: tuple[Array, ...], scaling: Thunk, scratch: tuple[Array, ...]
) -> Iterator[Thunk]:
    dy, x, dx = arrays
    normal, grads, mean, factor, product = scratch
    yield from _normalize(case, x, normal, mean, factor)
    yield partial(np.copyto, grads, dy)
    yield scaling
    yield from _dot(grads, normal, product)
    yield partial(np.multiply, normal, product, normal)
    if case.centred:
        yield from _mean(grads, mean)
        yield partial(np.subtract, grads, mean, grads)
    yield partial(np.subtract, grads, normal, grads)
    yield partial(np.multiply, grads, factor, grads)
    yield partial(np.copyto, dx, grads, casting="same_kind")


def bind_data(call: Binding) -> Thunk:
    """Returns the thunk that writes dx, given dy, x and scale; dx may lie over dy or x."""
    case, scale = RowCase.of(call.signature), call.inputs[2]
    *scratch, buffer = call.temporaries
    dy, x, dx = (v.reshape(case.shape) for v in (*call.inputs[:2], call.y))
    steps: list[Thunk] = []
    if buffer.size:
        steps.append(partial(np.copyto, buffer, scale))
        scale = buffer
    for n, a, b in case.cut:
        few = tuple(r[: b - a] for r in scratch)
        steps += _data_piece(case, (dy[n, a:b], x[n, a:b], dx[n, a:b]), _scale(case, few[1], scale, a, b), few)
    return in_turn(*steps)


def _sum_piece(case: RowCase, rows: Array, part: Array, total: Array, first: int) -> Iterator[Thunk]:
    """Yields steps that add rows to the gradient of the scale.

    `first` is the number of the first row in its image.
    """
    if case.each:
        few = part[: len(rows) * case.each]
        target = total[first * case.each :][: len(few)]
        yield partial(np.add.reduce, rows.reshape((len(few), -1)) if rows.size else rows, axis=1, out=few)
        yield partial(np.add, target, few, target)
    else:
        yield partial(np.add.reduce, rows, axis=0, out=part)
        yield partial(np.add, total, part, total)


def bind_scale(call: Binding) -> Thunk:
    """Returns the thunk that writes the gradient of the scale, given dy and x."""
    case = RowCase.of(call.signature)
    *scratch, part, sums = call.temporaries
    dy, x = (v.reshape(case.shape) for v in call.inputs)
    total = (sums if sums.size else call.y).reshape(-1)
    steps: list[Thunk] = [partial(total.fill, 0)]
    for n, a, b in case.cut:
        normal, grads, mean, factor, _ = (r[: b - a] for r in scratch)
        steps += _normalize(case, x[n, a:b], normal, mean, factor)
        steps.append(partial(np.copyto, grads, dy[n, a:b]))
        steps.append(partial(np.multiply, normal, grads, normal))
        steps += _sum_piece(case, normal, part, total, a)
    if sums.size:
        steps.append(partial(np.copyto, call.y.reshape(-1), total, casting="same_kind"))
    return in_turn(*steps)
