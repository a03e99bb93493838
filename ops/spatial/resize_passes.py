"""The kernels of resize. An axis is resized by one gather a tap; between axes a few rows stay in the cache."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Specs, Thunk, contiguous_at, unless
from ops.spatial.resize_tables import Axis, Table, table, transposed
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, Shape, TensorSpec, compute_dtype

_HALF = np.dtype("float16")


@frozen(eq=False)
class _Resized:
    """The axes that change, those that shrink most first; tensors are seen as (rows, the dimensions behind them)."""

    rows: int
    tables: tuple[tuple[int, Table], ...]
    stages: tuple[Shape, ...]


def _axis(attrs: Attrs, x: Shape, y: Shape, axis: int) -> Axis:
    elements, outputs = x[axis], y[axis]
    scale = attrs["scales"][axis] if attrs["scales"] else outputs / max(elements, 1)
    size = scale * elements if attrs["scales"] else outputs
    roi = attrs["roi"] or (0.0,) * len(x) + (1.0,) * len(x)
    return Axis(elements, outputs, scale, size, roi[axis], roi[axis + len(x)])


def _table(signature: Signature, axis: int) -> Table:
    """Returns the table of an axis; for a gradient, the transposed one.

    The output of a gradient has the shape of the tensor that was resized.
    """
    attrs, x, y = signature.attrs, signature.x.shape, signature.y.shape
    if "shape" not in attrs:
        return table(_axis(attrs, x, y, axis), attrs)
    return transposed(table(_axis(attrs, y, x, axis), attrs), y[axis])


def _changes(mapping: Table, elements: int) -> bool:
    """Returns whether a table is more than a copy."""
    if mapping.indices.shape[1] != elements or mapping.outside.any():
        return True
    hit = np.arange(elements) == mapping.indices
    return not (np.where(hit, mapping.weights, 0).sum(axis=0) == 1).all() or bool((mapping.weights[~hit] != 0).any())


def changed_axes(signature: Signature) -> list[tuple[int, Table]]:
    """Returns the axes that change, with their tables; those that shrink most first."""
    x, y = signature.x.shape, signature.y.shape
    every = [(a, _table(signature, a)) for a in range(len(x)) if x[a]]
    return sorted((t for t in every if _changes(t[1], x[t[0]])), key=lambda t: y[t[0]] / x[t[0]])


def _resized(signature: Signature) -> _Resized:
    x, y = signature.x.shape, signature.y.shape
    changed = changed_axes(signature)
    lead = min((a for a, _ in changed), default=0)
    stages = [x[lead:]]
    for axis, _ in changed:
        stages.append((*stages[-1][: axis - lead], y[axis], *stages[-1][axis - lead + 1 :]))
    tables = tuple((axis - lead + 1, t) for axis, t in changed)
    return _Resized(math.prod(x[:lead]), tables, tuple(stages))


def _dtype(signature: Signature) -> np.dtype[Any]:
    """Returns the dtype of computation: for integers that are weighed, a float that holds them."""
    dtype = signature.x.dtype
    if signature.attrs["mode"] == "nearest" and "shape" not in signature.attrs:
        return dtype
    if dtype in FLOATS:
        return compute_dtype(dtype)
    return np.dtype("float32" if dtype.itemsize <= 2 else "float64")


def _few(resized: _Resized, dtype: np.dtype[Any]) -> int:
    largest = max(map(math.prod, resized.stages)) * dtype.itemsize
    return max(1, min(resized.rows, CACHE_BYTES // 4 // max(largest, 1)))


def _temporaries(resized: _Resized, signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of a few rows after each axis, then of one weighed tap.

    A spec is empty where the rows are the input or the output itself.
    """
    dtype = _dtype(signature)
    few = _few(resized, dtype)
    sizes = [few * math.prod(s) for s in resized.stages]
    weighed = [n for n, (_, t) in zip(sizes[1:], resized.tables, strict=True) if len(t.indices) > 1]
    if dtype == signature.x.dtype:
        sizes[0] = 0
    if dtype == signature.y.dtype:
        sizes[-1] = 0
    return tuple(TensorSpec((n,), dtype) for n in (*sizes, max(weighed, default=0)))


def _interpolated(signature: Signature) -> Specs:
    return _temporaries(_resized(signature), signature)


def _apply(mapping: Table, axis: int, source: Array, target: Array, buffer: Array) -> Iterator[Thunk]:
    """Yields steps that resize one axis of dense arrays."""
    yield partial(np.take, source, mapping.indices[0], axis, target, "clip")
    if len(mapping.indices) == 1:
        return
    column = (-1,) + (1,) * (target.ndim - 1 - axis)
    weights = mapping.weights.astype(target.dtype)
    yield partial(np.multiply, target, weights[0].reshape(column), target)
    tap = buffer[: target.size].reshape(target.shape)
    for indices, row in zip(mapping.indices[1:], weights[1:], strict=True):
        yield partial(np.take, source, indices, axis, tap, "clip")
        yield partial(np.multiply, tap, row.reshape(column), tap)
        yield partial(np.add, target, tap, target)


def _fill_outside(resized: _Resized, y: Array, value: float) -> Iterator[Thunk]:
    for axis, mapping in resized.tables:
        for o in np.flatnonzero(mapping.outside):
            part = y[(slice(None),) * axis + (o,)]
            yield partial(np.copyto, part, constant(value, y.dtype))


def _piece(resized: _Resized, x: Array, y: Array, scratch: tuple[Array, ...], value: float) -> Iterator[Thunk]:
    """Yields steps for a few rows."""
    shapes = [(len(x), *s) for s in resized.stages]
    held = [r[: math.prod(s)].reshape(s) if r.size else y for r, s in zip(scratch[:-1], shapes, strict=True)]
    if scratch[0].size:
        yield partial(np.copyto, held[0], x)
    else:
        held[0] = x
    for (axis, mapping), source, target in zip(resized.tables, held[:-1], held[1:], strict=True):
        yield from _apply(mapping, axis, source, target, scratch[-1])
    yield from _fill_outside(resized, held[-1], value)
    if held[-1] is not y:
        yield partial(np.copyto, y, held[-1], casting="unsafe")


def _bind(call: Binding) -> Thunk:
    if call.y.size == 0:
        return in_turn()
    if call.x.size == 0:
        return partial(call.y.fill, 0)
    resized = _resized(call.signature)
    if not resized.tables:
        return partial(np.copyto, call.y, call.x)
    scratch = call.temporaries
    x = call.x.reshape((resized.rows, *resized.stages[0]))
    y = call.y.reshape((resized.rows, *resized.stages[-1]))
    steps: list[Thunk] = []
    for a, b in pieces(resized.rows, _few(resized, _dtype(call.signature))):
        steps += _piece(resized, x[a:b], y[a:b], scratch, call.attrs["extrapolation_value"])
    return in_turn(*steps)


def _repeats(signature: Signature) -> bool:
    """Returns whether the nearest elements are each element, repeated a whole number of times."""
    if signature.attrs["mode"] != "nearest" or signature.y.size == 0:
        return False
    for axis, (n, m) in enumerate(zip(signature.x.shape, signature.y.shape, strict=True)):
        if not n or m % n:
            return False
        mapping = _table(signature, axis)
        if mapping.outside.any() or (mapping.indices[0] != np.arange(m) // (m // n)).any():
            return False
    return True


_not_repeats = unless(_repeats, "elements are not repeated whole times")


def _repeats_of(call: Binding) -> tuple[Move, ...]:
    pairs = [(n, m // n) for n, m in zip(call.x.shape, call.y.shape, strict=True)]
    target = call.y.reshape([d for pair in pairs for d in pair])
    return ((call.x[tuple(s for _ in pairs for s in (slice(None), np.newaxis))], target),)


def _is_repeated(signature: Signature) -> bool:
    """Returns whether a gradient is that of elements which were repeated a whole number of times.

    Not for float16, whose sums are more exact in float32.
    """
    attrs = {n: v for n, v in signature.attrs.items() if n != "shape"}
    return signature.x.dtype in FLOATS - {_HALF} and _repeats(Signature(signature.outputs, signature.inputs, attrs))


_not_repeated = unless(_is_repeated, "elements are not repeated whole times, or float16")


def _bind_add_up(call: Binding) -> Thunk:
    """Returns the thunk that adds the repetitions one by one; each is a view of dy."""
    pairs = [(n, m // n) for n, m in zip(call.y.shape, call.x.shape, strict=True)]
    parts = call.x.reshape([d for pair in pairs for d in pair])
    steps: list[Thunk] = []
    for at in product(*(range(times) for _, times in pairs)):
        part = parts[tuple(s for i in at for s in (slice(None), i))]
        steps.append(partial(np.add, call.y, part, call.y) if any(at) else partial(np.copyto, call.y, part))
    return in_turn(*steps)


ADD_UP = Kernel("add up", _bind_add_up, contiguous=contiguous_at(0), unsupported=_not_repeated)
"""The gradient of REPEATS: no workspace."""
REPEATS = movement(_repeats_of, "repeat", unsupported=_not_repeats)
"""Nearest elements, enlarged by whole numbers: one copy, no workspace."""
INTERPOLATE = Kernel("axes", _bind, _interpolated, contiguous=contiguous_at(0))
"""Any resize."""
