"""Sums of two tensors of codes, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from ops.native.emit.byte_tile import LANES, call, pointer, splat
from ops.native.memory import real, share, word

Value = Any
_INDEX, _BYTE = ir.IntType(32), ir.IntType(8)
_SUMS, _REALS = ir.VectorType(_INDEX, LANES), ir.VectorType(ir.FloatType(), LANES)
_CODES = ir.VectorType(_BYTE, LANES)
_PIECE = 1 << 12


def _emit(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
    left, right, target, lanes, left_flip, right_flip = words
    reals = [splat(b, b.fptrunc(n, ir.FloatType())) for n in numbers]
    left_zero, left_factor, right_zero, right_factor, zero, low, high = reals
    inside = b.icmp_signed("<", ir.Constant(_SUMS, list(range(LANES))), splat(b, b.trunc(lanes, _INDEX)))
    align, none = ir.Constant(_INDEX, 1), ir.Constant(_CODES, [0] * LANES)

    def scaled(address: Value, flip: Value, shift: Value, factor: Value) -> Value:
        arguments = [pointer(b, address, 0, _CODES), align, inside, none]
        codes = b.xor(call(b, "llvm.masked.load.v16i8.p0", _CODES, arguments), splat(b, b.trunc(flip, _BYTE)))
        return b.fmul(b.fsub(b.sitofp(b.zext(codes, _SUMS), _REALS), shift), factor)

    total = b.fadd(scaled(left, left_flip, left_zero, left_factor), scaled(right, right_flip, right_zero, right_factor))
    moved = b.fadd(call(b, "llvm.roundeven.v16f32", _REALS, [total]), zero)
    raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
    held = b.select(b.fcmp_ordered("<", raised, high), raised, high)
    arguments = [b.trunc(b.fptosi(held, _SUMS), _CODES), pointer(b, target, 0, _CODES), align, inside]
    call(b, "llvm.masked.store.v16i8.p0", ir.VoidType(), arguments)


def _add_type(_: Any, words: Any, numbers: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = (
            [builder.extract_value(v, i) for i in range(len(t))] for t, v in zip(signature.args, values, strict=True)
        )
        _emit(builder, *given)
        return context.get_dummy_value()

    return types.void(words, numbers), generate


_add: Any = intrinsic(_add_type)


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
