"""Compiled functions on a row of neighbouring floats: what it folds to, and what becomes of it. Imports numba.

A row is an address and a count. Sums of many rows of `CHUNK` elements belong in float64: within one, four sums of 16
lanes go side by side, so that none is of many numbers (blocked summation; Higham, Accuracy and Stability, 4.2).
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from allocator.machine_code.memory import Decorator, jitable
from ops.native.emit.builder import FLOATS, INT, LANES, WORD, Value, advance, constant, shuffled, splat, word
from ops.native.memory import record_at
from ops.native.memory import word as word_at
from ops.vector.args import ROWS
from ops.vector.lanes import Carried, Floats, Lanes, each_vector, load, store
from ops.vector.math import exp_below, log, maximum, minimum

_HEAD = ROWS.itemsize
CHUNK = 1024
"""Elements that are summed in float32."""
_intrinsic: Decorator = intrinsic
_SIDE_BY_SIDE = 4
Fold = Callable[[Floats, Floats, Floats], Floats]
"""f(folded so far, elements, a number) -> folded."""
Join = Callable[[Floats, Floats], Floats]


def _add(a: Floats, b: Floats) -> Floats:
    return a + b


def _largest(a: Floats, b: Floats) -> Floats:
    """Returns the larger; NaN in b does not count."""
    return (b > a).choose(b, a)


def _joined(builder: Value, sums: Carried, join: Join) -> Value:
    """Joins all lanes of several vectors to one number.

    Lane i is joined with lane i + 8, then i + 4, i + 2 and i + 1, so that each lane has the result of all 16.
    """
    total = Floats(builder, sums[0])
    for other in sums[1:]:
        total = join(total, Floats(builder, other))
    for half in (8, 4, 2, 1):
        order = shuffled((i + half) % LANES for i in range(LANES))
        total = join(total, Floats(builder, builder.shuffle_vector(total.value, total.value, order)))
    return builder.extract_element(total.value, ir.Constant(INT, 0))


def _at(builder: Value, address: Value, number: Value) -> Value:
    return advance(builder, address, number, 4)


def _started(identity: float) -> Carried:
    return [constant(FLOATS, identity)] * _SIDE_BY_SIDE


def _counted(builder: Value, lanes: Lanes, value: Floats, sums: Carried) -> Carried:
    """Returns the sums for the next turn, the oldest one first. Lanes that do not count keep what they had."""
    value = value.value if lanes is None else builder.select(lanes, value.value, sums[0])
    return [*sums[1:], value]


def _folding(fold: Fold, join: Join, identity: float) -> Any:
    """Returns a compiled f(address, count, number) -> float32."""

    @_intrinsic
    def folded(_: Any, address: Any, count: Any, number: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
            address, count, number = values
            operand = Floats(builder, splat(builder, number))

            def body(index: Value, lanes: Lanes, sums: Carried) -> Carried:
                x = load(builder, _at(builder, address, index), lanes)
                return _counted(builder, lanes, fold(Floats(builder, sums[0]), x, operand), sums)

            return _joined(builder, each_vector(builder, count, _started(identity), body), join)

        return types.float32(types.int64, types.int64, types.float32), generate

    return folded


def _halves(builder: Value, a: Floats, b: Floats, half: int) -> tuple[Floats, Floats]:
    """Returns the first and the second halves of all groups of 2 * half lanes, those of a and b by turns.

    half = 4        a0 a1 a2 a3            first     a0 b0 a2 b2
                    b0 b1 b2 b3            second    a1 b1 a3 b3         each of four lanes
    """
    starts = range(0, LANES, 2 * half)
    halves = []
    for shift in (0, half):
        order = [o + i + shift for s in starts for o in (0, LANES) for i in range(s, s + half)]
        halves.append(Floats(builder, builder.shuffle_vector(a.value, b.value, shuffled(order))))
    return halves[0], halves[1]


def _joined_rows(builder: Value, sums: Carried, join: Join) -> Value:
    """Returns a vector with one number for each of 16 vectors: halves are joined, two vectors become one each time."""
    rows = [Floats(builder, v) for v in sums]
    for half in (8, 4, 2, 1):
        rows = [join(*_halves(builder, a, b, half)) for a, b in zip(rows[:half], rows[half:], strict=True)]
    return rows[0].value


def _folding_rows(fold: Callable[[Floats, Floats], Floats], join: Join, identity: float) -> Any:
    """Returns a compiled f(addresses of 16 rows, count, target), which folds each row; none waits for another one."""

    @_intrinsic
    def folded(_: Any, addresses: Any, count: Any, target: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
            addresses, count, target = values
            places = builder.inttoptr(addresses, WORD.as_pointer())
            rows = [builder.load(builder.gep(places, [word(i)], source_etype=WORD)) for i in range(LANES)]

            def body(index: Value, lanes: Lanes, sums: Carried) -> Carried:
                results = []
                for row, total in zip(rows, sums, strict=True):
                    value = fold(Floats(builder, total), load(builder, _at(builder, row, index), lanes)).value
                    results.append(value if lanes is None else builder.select(lanes, value, total))
                return results

            started = [constant(FLOATS, identity)] * LANES
            total = _joined_rows(builder, each_vector(builder, count, started, body), join)
            store(builder, target, None, Floats(builder, total))
            return word(0)

        return types.int64(types.int64, types.int64, types.int64), generate

    return folded


sum_16 = _folding_rows(_add, _add, 0.0)
sum_abs_16 = _folding_rows(lambda total, x: total + x.apply("fabs"), _add, 0.0)
sum_square_16 = _folding_rows(lambda total, x: x.times(x, total), _add, 0.0)
max_16 = _folding_rows(maximum, maximum, float("-inf"))
min_16 = _folding_rows(minimum, minimum, float("inf"))
largest_16 = _folding_rows(_largest, _largest, float("-inf"))
"""The maximum of 16 rows, where NaN does not count."""
row_sum = _folding(lambda total, x, _: total + x, _add, 0.0)
row_sum_abs = _folding(lambda total, x, _: total + x.apply("fabs"), _add, 0.0)
row_sum_square = _folding(lambda total, x, mean: (x - mean).times(x - mean, total), _add, 0.0)
"""The sum of squares of the differences from a number."""
row_max = _folding(lambda best, x, _: maximum(best, x), maximum, float("-inf"))
row_min = _folding(lambda best, x, _: minimum(best, x), minimum, float("inf"))
row_largest = _folding(lambda best, x, _: _largest(best, x), _largest, float("-inf"))
"""The maximum of a row, where NaN does not count."""


def _summing(*, writes: bool) -> Any:
    """Returns a compiled f(from, to, count, top, target): sums of e ** (x - top) in 16 lanes; top is the largest x."""

    @_intrinsic
    def summed(_: Any, source: Any, target: Any, count: Any, top: Any, sums: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
            source, target, count, top, place = values
            top_lanes = Floats(builder, splat(builder, top))

            def body(index: Value, lanes: Lanes, sums: Carried) -> Carried:
                power = exp_below(load(builder, _at(builder, source, index), lanes) - top_lanes)
                if writes:
                    store(builder, _at(builder, target, index), lanes, power)
                return _counted(builder, lanes, Floats(builder, sums[0]) + power, sums)

            a, b, c, d = (Floats(builder, v) for v in each_vector(builder, count, _started(0.0), body))
            store(builder, place, None, a + b + (c + d))
            return word(0)

        words = [types.int64] * 3
        return types.int64(*words, types.float32, types.int64), generate

    return summed


row_exp, row_sum_exp = _summing(writes=True), _summing(writes=False)
"""The first writes e ** (x - top) and their sums, the second one the sums alone."""


def _mapping(function: Callable[..., Floats], arrays: int, numbers: int) -> Any:
    """Returns a compiled f(target, count, addresses of arrays, numbers); the target may be one of the arrays."""
    words, reals = [types.int64] * (2 + arrays), [types.float32] * numbers

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        target, count, *rest = values
        constants = [Floats(builder, splat(builder, v)) for v in rest[arrays:]]

        def body(index: Value, lanes: Lanes, _: Carried) -> Carried:
            read = [load(builder, _at(builder, a, index), lanes) for a in rest[:arrays]]
            store(builder, _at(builder, target, index), lanes, function(*read, *constants))
            return []

        each_vector(builder, count, [], body)
        return word(0)

    return _TYPED[arrays + numbers - 1](types.int64(*words, *reals), generate)


def _typed_1(signature: Any, generate: Any) -> Any:
    @_intrinsic
    def mapped(_: Any, target: Any, count: Any, a: Any) -> Any:
        return signature, generate

    return mapped


def _typed_2(signature: Any, generate: Any) -> Any:
    @_intrinsic
    def mapped(_: Any, target: Any, count: Any, a: Any, b: Any) -> Any:
        return signature, generate

    return mapped


def _typed_3(signature: Any, generate: Any) -> Any:
    @_intrinsic
    def mapped(_: Any, target: Any, count: Any, a: Any, b: Any, c: Any) -> Any:
        return signature, generate

    return mapped


def _typed_4(signature: Any, generate: Any) -> Any:
    @_intrinsic
    def mapped(_: Any, target: Any, count: Any, a: Any, b: Any, c: Any, d: Any) -> Any:  # noqa: PLR0917 - words
        return signature, generate

    return mapped


def _typed_5(signature: Any, generate: Any) -> Any:
    @_intrinsic
    def mapped(  # noqa: PLR0917 - words
        _: Any, target: Any, count: Any, a: Any, b: Any, c: Any, d: Any, e: Any
    ) -> Any:
        return signature, generate

    return mapped


_TYPED = (_typed_1, _typed_2, _typed_3, _typed_4, _typed_5)
"""By the number of operands: numba wants each parameter to have a name."""
row_times = _mapping(lambda x, factor: x * factor, 1, 1)
row_minus_both = _mapping(lambda x, a, b: x - a - b, 1, 2)
row_affine = _mapping(lambda x, mean, factor, shift: (x - mean).times(factor, shift), 1, 3)
row_norm = _mapping(lambda x, scale, mean, factor: (x - mean) * factor * scale, 2, 2)
row_norm_shifted = _mapping(lambda x, scale, shift, mean, factor: ((x - mean) * factor).times(scale, shift), 3, 2)
rows_add = _mapping(_add, 2, 0)
rows_add_abs = _mapping(lambda total, x: total + x.apply("fabs"), 2, 0)
rows_add_square = _mapping(lambda total, x: x.times(x, total), 2, 0)
rows_max = _mapping(maximum, 2, 0)
rows_min = _mapping(minimum, 2, 0)
rows_largest = _mapping(_largest, 2, 0)
rows_exp = _mapping(lambda x, top: exp_below(x - top), 2, 0)
rows_div = _mapping(lambda x, total: x / total, 2, 0)
rows_add_exp = _mapping(lambda total, x, top: total + exp_below(x - top), 3, 0)
rows_log_shift = _mapping(lambda x, top, total: x - top - log(total), 3, 0)
rows_divided = _mapping(lambda x, number: x / number, 1, 1)
rows_log = _mapping(log, 1, 0)
rows_root = _mapping(lambda x: x.apply("sqrt"), 1, 0)
row_fill = _mapping(lambda number: number, 0, 1)
"""Writes one number everywhere."""


@jitable
def rows_bytes(rows: int) -> Any:
    """Returns the bytes of a ROWS record and what belongs to it."""
    args = record_at(rows, ROWS)
    return _HEAD + 8 * (args.loops + args.arrays * (args.loops + 1))


@jitable
def row_address(rows: int, array: int, row: int) -> Any:
    """Returns the address of an array's row, its number counted through all loops."""
    loops, lengths = record_at(rows, ROWS).loops, rows + _HEAD
    place = lengths + 8 * (loops + array * (loops + 1))
    address, strides = word_at(place, 0), place + 8
    for d in range(loops - 1, 0, -1):
        length = word_at(lengths, d)
        address += row % length * word_at(strides, d)
        row = row // length
    return address + row * word_at(strides, 0) if loops > 0 else address
