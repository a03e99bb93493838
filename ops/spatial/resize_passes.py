"""The kernels of resize. An axis is resized by one gather a tap; between axes a few rows stay in the cache."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, contiguous_at, unless
from ops.spatial.resize_axes import changed_axes, repeats, table_of
from ops.spatial.resize_tables import Table
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, Shape, TensorSpec, compute_dtype

_HALF = np.dtype("float16")
Tables = Sequence[tuple[int, Table]]
"""Axes of the stages, each with its table."""


@frozen(eq=False)
class _Resized:
    """The axes that change, those that shrink most first; tensors are seen as (rows, the dimensions behind them).

    Each of `axes` is told with the elements that an output reads along it; `lead` axes are the rows.
    """

    rows: int
    lead: int
    axes: tuple[tuple[int, int], ...]
    stages: tuple[Shape, ...]


def _resized(signature: Signature) -> _Resized:
    x, y = signature.x.shape, signature.y.shape
    changed = changed_axes(signature)
    lead = min((a for a, _ in changed), default=0)
    stages = [x[lead:]]
    for axis, _ in changed:
        stages.append((*stages[-1][: axis - lead], y[axis], *stages[-1][axis - lead + 1 :]))
    return _Resized(math.prod(x[:lead]), lead, tuple(changed), tuple(stages))


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
    weighed = [n for n, (_, taps) in zip(sizes[1:], resized.axes, strict=True) if taps > 1]
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


def _fill_outside(tables: Tables, y: Array, value: float) -> Iterator[Thunk]:
    for axis, mapping in tables:
        for o in np.flatnonzero(mapping.outside):
            part = y[(slice(None),) * axis + (o,)]
            yield partial(np.copyto, part, constant(value, y.dtype))


def _piece(call: Binding, resized: _Resized, tables: Tables, x: Array, y: Array) -> Iterator[Thunk]:
    """Yields steps for a few rows."""
    scratch, shapes = call.temporaries, [(len(x), *s) for s in resized.stages]
    held = [r[: math.prod(s)].reshape(s) if r.size else y for r, s in zip(scratch[:-1], shapes, strict=True)]
    if scratch[0].size:
        yield partial(np.copyto, held[0], x)
    else:
        held[0] = x
    for (axis, mapping), source, target in zip(tables, held[:-1], held[1:], strict=True):
        yield from _apply(mapping, axis, source, target, scratch[-1])
    yield from _fill_outside(tables, held[-1], call.attrs["extrapolation_value"])
    if held[-1] is not y:
        yield partial(np.copyto, y, held[-1], casting="unsafe")


def _bind(call: Binding) -> Thunk:
    if call.y.size == 0:
        return in_turn()
    if call.x.size == 0:
        return partial(call.y.fill, 0)
    resized = _resized(call.signature)
    if not resized.axes:
        return partial(np.copyto, call.y, call.x)
    tables = [(axis - resized.lead + 1, table_of(call.signature, axis)) for axis, _ in resized.axes]
    x = call.x.reshape((resized.rows, *resized.stages[0]))
    y = call.y.reshape((resized.rows, *resized.stages[-1]))
    steps: list[Thunk] = []
    for a, b in pieces(resized.rows, _few(resized, _dtype(call.signature))):
        steps += _piece(call, resized, tables, x[a:b], y[a:b])
    return in_turn(*steps)


_not_repeats = unless(repeats, "elements are not repeated whole times")


def _repeats_of(call: Binding) -> tuple[Move, ...]:
    pairs = [(n, m // n) for n, m in zip(call.x.shape, call.y.shape, strict=True)]
    target = call.y.reshape([d for pair in pairs for d in pair])
    return ((call.x[tuple(s for _ in pairs for s in (slice(None), np.newaxis))], target),)


def _is_repeated(signature: Signature) -> bool:
    """Returns whether a gradient is that of elements which were repeated a whole number of times.

    Not for float16, whose sums are more exact in float32.
    """
    attrs = {n: v for n, v in signature.attrs.items() if n != "shape"}
    return signature.x.dtype in FLOATS - {_HALF} and repeats(Signature(signature.outputs, signature.inputs, attrs))


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
