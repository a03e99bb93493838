"""float32 to codes and back with one scale for all, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Sequence

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
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
from ops.native.memory import floats, octets, share, signed_octets, word

_PIECE = 1 << 12


def _to_codes(b: Value, words: Sequence[Value], reals: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, low, high = (splat_float(b, r) for r in reals)
    mask = first_lanes(b, lanes)
    divided = b.fdiv(load(b, source, FLOATS, mask), scale)
    moved = b.fadd(call(b, "llvm.roundeven.v16f32", FLOATS, [divided]), zero)
    raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
    held = b.select(b.fcmp_ordered("<", raised, high), raised, high)
    store(b, target, b.trunc(b.fptosi(held, INTS), BYTES), mask)


def _to_reals(b: Value, words: Sequence[Value], reals: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, least, _ = reals
    mask = first_lanes(b, lanes)
    codes = load(b, source, BYTES, mask)
    signed = splat(b, b.fcmp_ordered("<", least, ir.Constant(DOUBLE, 0.0)))
    wide = b.select(signed, b.sext(codes, INTS), b.zext(codes, INTS))
    store(b, target, b.fmul(b.fsub(b.sitofp(wide, FLOATS), splat_float(b, zero)), splat_float(b, scale)), mask)


_codes, _reals = intrinsic_of_two(_to_codes), intrinsic_of_two(_to_reals)


def run(words: int, part: int, parts: int) -> None:
    """The words: x, y, scale, zero (0: none), lines, elements of one, bytes from one of x, and of y, to the next.

    Then 1 for codes to reals, else 0; and 1 where codes are signed.
    """
    lines, length, backwards, signed = word(words, 4), word(words, 5), word(words, 8), word(words, 9)
    scale, zero = floats(word(words, 2), 1)[0], 0.0
    if word(words, 3):
        zero = float(signed_octets(word(words, 3), 1)[0]) if signed else float(octets(word(words, 3), 1)[0])
    low, high = (-128.0, 127.0) if signed else (0.0, 255.0)
    numbers = (float(scale), zero, low, high)
    pieces = (length + _PIECE - 1) // _PIECE
    first, last = share(lines * pieces, part, parts)
    x_size, y_size = (1, 4) if backwards else (4, 1)
    for job in range(first, last):
        line, start = job // pieces, job % pieces * _PIECE
        count = min(_PIECE, length - start)
        x = word(words, 0) + line * word(words, 6) + start * x_size
        y = word(words, 1) + line * word(words, 7) + start * y_size
        for i in range(0, count, LANES):
            if backwards:
                _reals((x + i, y + 4 * i, count - i), numbers)
            else:
                _codes((x + 4 * i, y + i, count - i), numbers)
