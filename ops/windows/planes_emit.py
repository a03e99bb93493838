"""LLVM code for sliding windows over planes: 16 windows side by side in a row, lane by lane, in registers.

Where a tap of a window lies outside, its lane is not read. Imports llvmlite: compiled modules alone load it. Addresses
and hops are words of 64 bits, in bytes; columns are compared in 32, which `ops.pool.compiled` sees to.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.windows.emit import FLOAT, INDEX, LANES, LEAST, MASK, VECTOR, WORD, ZEROS, call, loop, rooms_of, splat

Value = Any
_ALIGNMENT = ir.Constant(INDEX, 4)
_INDICES = ir.VectorType(INDEX, LANES)
_NUMBERS = ir.Constant(_INDICES, list(range(LANES)))
_ONES = ir.Constant(VECTOR, [1.0] * LANES)


class _Plane(NamedTuple):
    """The words of a tile.

    x is where column 0 of the row of the first tap lies, y the first output. `lanes` outputs are written. `column` is
    that of the first lane's first tap; columns are those of a row, `counted` the end of those that count in a mean,
    `begin` the first of them. Taps and hops are counts and bytes along depth and height; along the row there are
    `taps_x` of them, `step` columns apart, and lanes are `stride` columns apart.
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


def _columns(builder: Value, plane: _Plane, tap: Value, stride: Value) -> Value:
    """The columns of the lanes for one tap."""
    first = builder.trunc(builder.add(plane.column, builder.mul(plane.step, tap)), INDEX)
    return builder.add(splat(builder, first), builder.mul(_NUMBERS, splat(builder, builder.trunc(stride, INDEX))))


def _load(builder: Value, row: Value, plane: _Plane, column: Value, otherwise: Value) -> Value:
    """16 columns side by side. Where none is outside, no mask: from far away, loads of some lanes are much slower."""
    pointer = builder.inttoptr(builder.add(row, builder.mul(column, ir.Constant(WORD, 4))), VECTOR.as_pointer())
    last = builder.add(column, ir.Constant(WORD, LANES))
    whole = builder.and_(
        builder.icmp_signed(">=", column, ir.Constant(WORD, 0)), builder.icmp_signed("<=", last, plane.columns)
    )
    (room,) = rooms_of(builder, [otherwise])
    with builder.if_else(whole, likely=True) as (all_lanes, some_lanes):
        with all_lanes:
            builder.store(builder.load(pointer, align=4, typ=VECTOR), room)
        with some_lanes:
            columns = builder.add(splat(builder, builder.trunc(column, INDEX)), _NUMBERS)
            arguments = [pointer, _ALIGNMENT, _below(builder, columns, plane.columns), otherwise]
            builder.store(call(builder, "llvm.masked.load.v16f32.p0", VECTOR, arguments), room)
    return builder.load(room, typ=VECTOR)


def _below(builder: Value, columns: Value, limit: Value) -> Value:
    """Lanes in [0, limit)."""
    return builder.icmp_unsigned("<", columns, splat(builder, builder.trunc(limit, INDEX)))


def _column(builder: Value, plane: _Plane, tap: Value) -> Value:
    """The column of the first lane for one tap."""
    return builder.add(plane.column, builder.mul(plane.step, tap))


def _near(builder: Value, row: Value, plane: _Plane, tap: Value, otherwise: Value) -> Value:
    """Lanes that lie side by side."""
    return _load(builder, row, plane, _column(builder, plane, tap), otherwise)


def _halved(builder: Value, row: Value, plane: _Plane, tap: Value, otherwise: Value) -> Value:
    """Every second of 32 columns."""
    first = _column(builder, plane, tap)
    second = builder.add(first, ir.Constant(WORD, LANES))
    halves = [_load(builder, row, plane, column, otherwise) for column in (first, second)]
    return builder.shuffle_vector(*halves, ir.Constant(_INDICES, [2 * i for i in range(LANES)]))


def _gathered(builder: Value, row: Value, plane: _Plane, tap: Value, otherwise: Value) -> Value:
    """Lanes at any distance."""
    columns = _columns(builder, plane, tap, plane.stride)
    mask = _below(builder, columns, plane.columns)
    wide = builder.sext(columns, ir.VectorType(WORD, LANES))
    offsets = builder.mul(wide, ir.Constant(wide.type, [4] * LANES))
    pointers = builder.inttoptr(builder.add(splat(builder, row), offsets), ir.VectorType(FLOAT.as_pointer(), LANES))
    arguments = [pointers, _ALIGNMENT, mask, otherwise]
    return call(builder, "llvm.masked.gather.v16f32.v16p0", VECTOR, arguments)


_READS = {1: _near, 2: _halved, 0: _gathered}


def _joined(builder: Value, plane: _Plane, stride: int, start: Value, join: Callable[[Value, Value], Value]) -> Value:
    """All taps of the windows, joined to the start."""
    (room,) = rooms_of(builder, [start])
    with loop(builder, plane.taps_z) as z:
        slab = builder.add(plane.x, builder.mul(plane.hop_z, z))
        with loop(builder, plane.taps_y) as y:
            row = builder.add(slab, builder.mul(plane.hop_y, y))
            with loop(builder, plane.taps_x) as x:
                pixel = _READS[stride](builder, row, plane, x, start)
                builder.store(join(builder.load(room, typ=VECTOR), pixel), room)
    return builder.load(room, typ=VECTOR)


def _store(builder: Value, plane: _Plane, value: Value) -> None:
    pointer = builder.inttoptr(plane.y, VECTOR.as_pointer())
    with builder.if_else(builder.icmp_signed("==", plane.lanes, ir.Constant(WORD, LANES))) as (full, some):
        with full:
            builder.store(value, pointer, align=4)
        with some:
            mask = builder.icmp_signed("<", _NUMBERS, splat(builder, builder.trunc(plane.lanes, INDEX)))
            call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), [value, pointer, _ALIGNMENT, mask])


def maxima(stride: int) -> Callable[..., None]:
    """The emitter for a stride of 1 or 2, or any (0): the largest of each window; NaN where there is one."""

    def emit(builder: Value, words: Sequence[Value], _: Sequence[Value]) -> None:
        plane = _Plane(*words)

        def join(found: Value, pixel: Value) -> Value:
            better = builder.fcmp_ordered(">", pixel, found)
            return builder.select(builder.or_(better, builder.fcmp_unordered("uno", pixel, pixel)), pixel, found)

        _store(builder, plane, _joined(builder, plane, stride, LEAST, join))

    return emit


def means(stride: int) -> Callable[..., None]:
    """The emitter of sums, divided by the number given times the columns that count; by 1 where that is 0."""

    def emit(builder: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
        plane = _Plane(*words)
        sums = _joined(builder, plane, stride, ZEROS, builder.fadd)
        (room,) = rooms_of(builder, [ZEROS])
        begin, end = (splat(builder, builder.trunc(n, INDEX)) for n in (plane.begin, plane.counted))
        with loop(builder, plane.taps_x) as tap:
            columns = _columns(builder, plane, tap, plane.stride)
            inside = builder.and_(builder.icmp_signed(">=", columns, begin), builder.icmp_signed("<", columns, end))
            assert inside.type == MASK
            more = builder.fadd(builder.load(room, typ=VECTOR), builder.select(inside, _ONES, ZEROS))
            builder.store(more, room)
        rows = splat(builder, builder.fptrunc(numbers[0], FLOAT))
        count = builder.fmul(builder.load(room, typ=VECTOR), rows)
        count = builder.select(builder.fcmp_ordered("<", count, _ONES), _ONES, count)
        _store(builder, plane, builder.fdiv(sums, count))

    return emit
