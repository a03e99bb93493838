"""One pass over quantised values, compiled: to float32 and back, sums, tables. Imports numba: a door loads it.

Tensors are lines of neighbouring elements, `hop` bytes apart. The units of work are pieces of lines.
"""

from collections.abc import Sequence

from llvmlite import ir  # type: ignore[import-untyped]

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import jitable
from ops.native.emit.builder import (
    BYTE,
    BYTES,
    DOUBLE,
    FLOATS,
    INTS,
    LANES,
    Value,
    call,
    first_lanes,
    load,
    splat,
    splat_float,
    store,
)
from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import floats, octets, record_at, share, signed_octets
from ops.quantised.args import ADD_ARGS, LINEAR_ARGS, LOOK_UP_ARGS

_PIECE = 1 << 12
"""Elements of a unit of work. More of them mean fewer starts of units, fewer of them share short tensors evenly; no
benchmark covers it."""


def _emit_rounded(b: Value, real: Value, zero: Value, low: Value, high: Value) -> Value:
    """Returns round(real) + zero between bounds as bytes; NaN becomes the lower bound."""
    moved = b.fadd(call(b, "llvm.roundeven.v16f32", FLOATS, [real]), zero)
    raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
    clipped = b.select(b.fcmp_ordered("<", raised, high), raised, high)
    return b.trunc(b.fptosi(clipped, INTS), BYTES)


def _emit_quantise(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, low, high = (splat_float(b, number) for number in numbers)
    mask = first_lanes(b, lanes)
    divided = b.fdiv(load(b, source, FLOATS, mask), scale)
    store(b, target, _emit_rounded(b, divided, zero, low, high), mask)


def _emit_dequantise(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, least, _ = numbers
    mask = first_lanes(b, lanes)
    values = load(b, source, BYTES, mask)
    signed = splat(b, b.fcmp_ordered("<", least, ir.Constant(DOUBLE, 0.0)))
    wide = b.select(signed, b.sext(values, INTS), b.zext(values, INTS))
    store(b, target, b.fmul(b.fsub(b.sitofp(wide, FLOATS), splat_float(b, zero)), splat_float(b, scale)), mask)


def _emit_add(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
    left, right, target, lanes, left_flip, right_flip = words
    left_zero, left_factor, right_zero, right_factor, zero, low, high = (splat_float(b, n) for n in numbers)
    mask = first_lanes(b, lanes)

    def scaled(address: Value, flip: Value, shift: Value, factor: Value) -> Value:
        values = b.xor(load(b, address, BYTES, mask), splat(b, b.trunc(flip, BYTE)))
        return b.fmul(b.fsub(b.sitofp(b.zext(values, INTS), FLOATS), shift), factor)

    total = b.fadd(scaled(left, left_flip, left_zero, left_factor), scaled(right, right_flip, right_zero, right_factor))
    store(b, target, _emit_rounded(b, total, zero, low, high), mask)


_quantise, _dequantise, _add = map(intrinsic_of_two, (_emit_quantise, _emit_dequantise, _emit_add))


@jitable
def _pieces_of(length: int) -> int:
    return (length + _PIECE - 1) // _PIECE


@jitable
def _piece(job: int, length: int) -> tuple[int, int, int]:
    """Returns the line, the first element and the number of elements of a unit of work."""
    pieces = _pieces_of(length)
    start = job % pieces * _PIECE
    return job // pieces, start, min(_PIECE, length - start)


@entry(fastmath=EXACT)
def linear(address: int, part: int, parts: int) -> None:
    """Quantises, or dequantises; the arguments are a LINEAR_ARGS record."""
    args = record_at(address, LINEAR_ARGS)
    scale, zero = floats(args.scale, 1)[0], 0.0
    if args.zero:
        zero = float(signed_octets(args.zero, 1)[0]) if args.signed else float(octets(args.zero, 1)[0])
    low, high = (-128.0, 127.0) if args.signed else (0.0, 255.0)
    numbers = (float(scale), zero, low, high)
    x_size, y_size = (1, 4) if args.backwards else (4, 1)
    first, last = share(args.lines * _pieces_of(args.length), part, parts)
    for job in range(first, last):
        line, start, count = _piece(job, args.length)
        x, y = args.x + line * args.x_hop + start * x_size, args.y + line * args.y_hop + start * y_size
        for i in range(0, count, LANES):
            if args.backwards:
                _dequantise((x + i, y + 4 * i, count - i), numbers)
            else:
                _quantise((x + 4 * i, y + i, count - i), numbers)


@entry(fastmath=EXACT)
def add(address: int, part: int, parts: int) -> None:
    """Adds two tensors; the arguments are an ADD_ARGS record."""
    args = record_at(address, ADD_ARGS)
    of_a, of_b = (args.a_zero, args.a_factor), (args.b_zero, args.b_factor)
    numbers = (*of_a, *of_b, args.zero, args.low, args.high)
    first, last = share(args.lines * _pieces_of(args.length), part, parts)
    for job in range(first, last):
        line, start, count = _piece(job, args.length)
        a, b = args.a + line * args.a_hop + start, args.b + line * args.b_hop + start
        y = args.y + line * args.y_hop + start
        for i in range(0, count, LANES):
            _add((a + i, b + i, y + i, count - i, args.a_flip, args.b_flip), numbers)


@entry()
def look_up(address: int, part: int, parts: int) -> None:
    """Writes table[x]; the arguments are a LOOK_UP_ARGS record."""
    args = record_at(address, LOOK_UP_ARGS)
    table = octets(args.table, 256)
    first, last = share(args.lines * _pieces_of(args.length), part, parts)
    for job in range(first, last):
        line, start, count = _piece(job, args.length)
        x, y = octets(args.x + line * args.x_hop + start, count), octets(args.y + line * args.y_hop + start, count)
        for i in range(count):
            y[i] = table[x[i]]
