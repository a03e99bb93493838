"""Resizing of float32 along one or two axes as one compiled call: each output is a sum over the taps of both.

Between the axes nothing is kept. What lies behind the second one (channels, where they come last) is computed side by
side; where that is the last axis itself, the outputs of a row are.
"""

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.native.call import Native, Step
from ops.native.records import pack_args
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.spatial.args import RESIZE
from ops.spatial.resize_axes import changed_axes, table_of
from ops.spatial.resize_tables import Table
from ops.tensor.spec import Array, Shape
from ops.windows.pixels import dense_pixels, pitch

_MOST_TAPS = 4
"""Most elements that an output is computed from at once, over both axes. It trades the temporaries of one axis after
the other for more products: as many as the axes' numbers multiplied, not added. No benchmark covers it."""
_SAME = Table(np.zeros((1, 1), np.intp), np.ones((1, 1)), np.zeros(1, bool))
"""The table of an axis of length 1 that does not change."""


@frozen(eq=False)
class _Groups:
    """The axes that change, and the dimensions before, between and behind them; the last axis is `inner`.

    Where the last axis changes it is the second one, and there is nothing behind it.
    """

    axes: tuple[int, int]
    tables: tuple[Table, Table]
    outer: int
    middle: int
    tail: int
    is_last: bool


def _groups(shape: Shape, changed: Sequence[tuple[int, Table]]) -> _Groups:
    """Returns the groups; where only one axis changes, it is the second one."""
    (a, first), (b, second) = sorted(changed, key=lambda t: t[0]) if len(changed) == 2 else ((-1, _SAME), changed[0])
    between = shape[a + 1 : b] if a >= 0 else ()
    outer = math.prod(shape[: a if a >= 0 else b])
    tail = math.prod(shape[b + 1 : -1])
    return _Groups((a, b), (first, second), outer, math.prod(between), tail, b == len(shape) - 1)


def _steps(groups: _Groups, array: Array) -> tuple[int, ...]:
    """Returns the elements from one to the next along: outer, a, middle, b, tail; pixels are dense, at one pitch."""
    a, b = (array.shape[axis] if axis >= 0 else 1 for axis in groups.axes)
    step = pitch(array)
    step_b = 1 if groups.is_last else groups.tail * step
    middle = step if groups.is_last else b * step_b
    return a * groups.middle * middle, groups.middle * middle, middle, step_b, step


def _columns(table: Table) -> tuple[Array, Array, Array]:
    """Returns indices, weights, and what is outside, as compiled code reads them."""
    dense = np.ascontiguousarray
    return dense(table.indices, np.int64), dense(table.weights, np.float32), dense(table.outside, np.uint8)


def _bind(call: Binding) -> Thunk:
    x, y = call.x, call.y
    groups = _groups(x.shape, [(axis, table_of(call.signature, axis)) for axis, _ in changed_axes(call.signature)])
    (a, b), tables = groups.axes, tuple(map(_columns, groups.tables))
    indices, weights, outside = zip(*([column.ctypes.data for column in t] for t in tables), strict=True)
    args = pack_args(
        RESIZE,
        x=x.ctypes.data,
        y=y.ctypes.data,
        outer=groups.outer,
        outputs_a=y.shape[a] if a >= 0 else 1,
        middle=groups.middle,
        outputs_b=y.shape[b],
        tail=groups.tail,
        inner=1 if groups.is_last else x.shape[-1],
        length_b=x.shape[b],
        is_last=groups.is_last,
        taps=[len(t[0]) for t in tables],
        indices=indices,
        weights=weights,
        outside=outside,
        x_steps=_steps(groups, x),
        y_steps=_steps(groups, y),
        value=call.attrs["extrapolation_value"],
    )
    return Native((Step(address("ops.spatial.resize_code", "resize"), args),), (x, y, tables))


def _supports(signature: Signature) -> bool:
    if signature.x.dtype != np.dtype("float32") or signature.x.size == 0 or signature.x.ndim < 2:
        return False
    changed = changed_axes(signature)
    along_row = any(axis == signature.x.ndim - 1 for axis, _ in changed)
    taps = math.prod(taps for _, taps in changed)
    return len(changed) in (1, 2) and (taps <= _MOST_TAPS or not along_row)


_unsupported = unless(_supports, "not float32, or not one or two axes change, or too many taps along a row")


RESIZE_NATIVE = Kernel(
    "native", _bind, reads=dense_pixels, unsupported=_unsupported, writes=dense_pixels, backend=NUMBA
)
