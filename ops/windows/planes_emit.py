"""LLVM code for sliding windows over planes: 16 windows side by side in a row, lane by lane, in registers.

    stride 1     one tap of the 16 windows is 16 columns side by side, loaded at once
    stride 2     every second of 32 columns:   0 . 2 . 4 . ... of two vectors, shuffled into one
    others       lanes are gathered

Where a tap of a window lies outside, its lane is not read. Imports llvmlite: compiled modules alone load it. Addresses
and hops are words of 64 bits, in bytes; columns are compared in 32, which `ops.pool.compiled` sees to.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
    FLOATS,
    LANES,
    WORD,
    Value,
    advance,
    constant,
    counting,
    first_lanes,
    gather,
    load,
    numbers,
    shuffled,
    splat,
    splat_float,
    splat_int,
    store,
    variables,
    word,
)
from ops.windows.emit import LEAST, ZEROS, larger_or_nan

_ONES = constant(FLOATS, 1.0)


class Plane(NamedTuple):
    """The words of a tile.

    x is the address of column 0 of the row of the first tap, y that of the first output. `lanes` outputs are written.
    `column` is that of the first lane's first tap; `columns` are those of a row; those from `begin` to `counted` count
    in a mean. Taps and hops are counts and bytes along depth and height; along the row there are `taps_x` of them,
    `step` columns apart, and lanes are `stride` columns apart.
    """

    x: Value
    y: Value
    lanes: Value
    column: Value
    columns: Value
    begin: Value
    counted: Value
    taps_z: Value
    taps_y: Value
    hop_z: Value
    hop_y: Value
    taps_x: Value
    step: Value
    stride: Value


def _columns(builder: Value, plane: Plane, tap: Value) -> Value:
    """Returns the columns of the lanes for one tap."""
    first = splat_int(builder, _column(builder, plane, tap))
    return builder.add(first, builder.mul(numbers(), splat_int(builder, plane.stride)))


def _load(builder: Value, row: Value, plane: Plane, column: Value, otherwise: Value) -> Value:
    """Returns 16 columns side by side; the load has no mask where no column is outside."""
    place = advance(builder, row, column, 4)
    last = builder.add(column, word(LANES))
    whole = builder.and_(builder.icmp_signed(">=", column, word(0)), builder.icmp_signed("<=", last, plane.columns))
    (result,) = variables(builder, [otherwise])
    with builder.if_else(whole, likely=True) as (all_lanes, some_lanes):
        with all_lanes:
            builder.store(load(builder, place, FLOATS), result)
        with some_lanes:
            mask = _below(builder, builder.add(splat_int(builder, column), numbers()), plane.columns)
            builder.store(load(builder, place, FLOATS, mask, otherwise=otherwise), result)
    return builder.load(result, typ=FLOATS)


def _below(builder: Value, columns: Value, limit: Value) -> Value:
    """Returns the mask of the lanes in [0, limit): as unsigned numbers, negative ones are above it."""
    return builder.icmp_unsigned("<", columns, splat_int(builder, limit))


def _column(builder: Value, plane: Plane, tap: Value) -> Value:
    """Returns the column of the first lane for one tap."""
    return advance(builder, plane.column, plane.step, tap)


def _near(builder: Value, row: Value, plane: Plane, tap: Value, otherwise: Value) -> Value:
    """Returns lanes that lie side by side."""
    return _load(builder, row, plane, _column(builder, plane, tap), otherwise)


def _halved(builder: Value, row: Value, plane: Plane, tap: Value, otherwise: Value) -> Value:
    """Returns every second of 32 columns."""
    first = _column(builder, plane, tap)
    second = builder.add(first, word(LANES))
    halves = [_load(builder, row, plane, column, otherwise) for column in (first, second)]
    return builder.shuffle_vector(*halves, shuffled(range(0, 2 * LANES, 2)))


def _gathered(builder: Value, row: Value, plane: Plane, tap: Value, otherwise: Value) -> Value:
    """Returns lanes at any distance."""
    columns = _columns(builder, plane, tap)
    mask = _below(builder, columns, plane.columns)
    wide = builder.sext(columns, ir.VectorType(WORD, LANES))
    offsets = builder.mul(wide, constant(wide.type, 4))
    return gather(builder, builder.add(splat(builder, row), offsets), mask, otherwise)


_READS = {1: _near, 2: _halved, 0: _gathered}


def _joined(builder: Value, plane: Plane, stride: int, start: Value, join: Callable[[Value, Value], Value]) -> Value:
    """Returns the start with all taps of the windows joined to it."""
    (result,) = variables(builder, [start])
    with counting(builder, plane.taps_z) as z:
        slab = advance(builder, plane.x, plane.hop_z, z)
        with counting(builder, plane.taps_y) as y:
            row = advance(builder, slab, plane.hop_y, y)
            with counting(builder, plane.taps_x) as x:
                pixel = _READS[stride](builder, row, plane, x, start)
                builder.store(join(builder.load(result, typ=FLOATS), pixel), result)
    return builder.load(result, typ=FLOATS)


def _store(builder: Value, plane: Plane, value: Value) -> None:
    with builder.if_else(builder.icmp_signed("==", plane.lanes, word(LANES))) as (full, some):
        with full:
            store(builder, plane.y, value)
        with some:
            store(builder, plane.y, value, first_lanes(builder, plane.lanes))


def maxima(stride: int) -> Callable[..., None]:
    """Returns the emitter for a stride of 1 or 2, or any (0): the largest of each window; NaN where there is one."""

    def emit(builder: Value, words: Sequence[Value], _: Sequence[Value]) -> None:
        plane = Plane(*words)
        largest = _joined(builder, plane, stride, LEAST, lambda a, b: larger_or_nan(builder, a, b))
        _store(builder, plane, largest)

    return emit


def means(stride: int) -> Callable[..., None]:
    """Returns the emitter of sums, divided by the number times the columns that count; by 1 where that is 0."""

    def emit(builder: Value, words: Sequence[Value], rows: Sequence[Value]) -> None:
        plane = Plane(*words)
        sums = _joined(builder, plane, stride, ZEROS, builder.fadd)
        (counts,) = variables(builder, [ZEROS])
        begin, end = (splat_int(builder, n) for n in (plane.begin, plane.counted))
        with counting(builder, plane.taps_x) as tap:
            columns = _columns(builder, plane, tap)
            inside = builder.and_(builder.icmp_signed(">=", columns, begin), builder.icmp_signed("<", columns, end))
            builder.store(builder.fadd(builder.load(counts, typ=FLOATS), builder.select(inside, _ONES, ZEROS)), counts)
        count = builder.fmul(builder.load(counts, typ=FLOATS), splat_float(builder, rows[0]))
        count = builder.select(builder.fcmp_ordered("<", count, _ONES), _ONES, count)
        _store(builder, plane, builder.fdiv(sums, count))

    return emit
