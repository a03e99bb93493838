"""Sums of two tensors of codes, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Sequence

from ops.native.emit.builder import (
    BYTE,
    BYTES,
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
from ops.native.memory import real, share, word

_PIECE = 1 << 12


def _emit(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
    left, right, target, lanes, left_flip, right_flip = words
    left_zero, left_factor, right_zero, right_factor, zero, low, high = (splat_float(b, n) for n in numbers)
    mask = first_lanes(b, lanes)

    def scaled(address: Value, flip: Value, shift: Value, factor: Value) -> Value:
        codes = b.xor(load(b, address, BYTES, mask), splat(b, b.trunc(flip, BYTE)))
        return b.fmul(b.fsub(b.sitofp(b.zext(codes, INTS), FLOATS), shift), factor)

    total = b.fadd(scaled(left, left_flip, left_zero, left_factor), scaled(right, right_flip, right_zero, right_factor))
    moved = b.fadd(call(b, "llvm.roundeven.v16f32", FLOATS, [total]), zero)
    raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
    held = b.select(b.fcmp_ordered("<", raised, high), raised, high)
    store(b, target, b.trunc(b.fptosi(held, INTS), BYTES), mask)


_add = intrinsic_of_two(_emit)


def run(words: int, part: int, parts: int) -> None:
    """The words: a, b, y, lines, bytes of one, bytes from one of a, b and y to the next, bits to turn in a and in b.

    Then floats: zero point (as uint8) and factor of a, of b, and zero point, least and greatest code of y.
    """
    lines, length = word(words, 3), word(words, 4)
    numbers = (
        real(words, 10), real(words, 11), real(words, 12), real(words, 13), real(words, 14), real(words, 15),
        real(words, 16),
    )  # fmt: skip
    pieces = (length + _PIECE - 1) // _PIECE
    first, last = share(lines * pieces, part, parts)
    for job in range(first, last):
        line, start = job // pieces, job % pieces * _PIECE
        count = min(_PIECE, length - start)
        a = word(words, 0) + line * word(words, 5) + start
        b = word(words, 1) + line * word(words, 6) + start
        y = word(words, 2) + line * word(words, 7) + start
        for i in range(0, count, LANES):
            _add((a + i, b + i, y + i, count - i, word(words, 8), word(words, 9)), numbers)
