"""float32 to codes and back with one scale for all, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from ops.native.emit.byte_tile import LANES, call, pointer, splat
from ops.native.memory import floats, octets, share, signed_octets, word

Value = Any
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)
_SUMS, _REALS = ir.VectorType(_INDEX, LANES), ir.VectorType(ir.FloatType(), LANES)
_CODES = ir.VectorType(ir.IntType(8), LANES)
_PIECE = 1 << 12


def _inside(b: Value, lanes: Value) -> Value:
    return b.icmp_signed("<", ir.Constant(_SUMS, list(range(LANES))), splat(b, b.trunc(lanes, _INDEX)))


def _load(b: Value, address: Value, kind: Value, lanes: Value) -> Value:
    """The first lanes of 16 elements, the others 0."""
    name, align = ("f32", 4) if kind is _REALS else ("i8", 1)
    none = ir.Constant(kind, [0] * LANES)
    arguments = [pointer(b, address, 0, kind), ir.Constant(_INDEX, align), _inside(b, lanes), none]
    return call(b, f"llvm.masked.load.v16{name}.p0", kind, arguments)


def _store(b: Value, address: Value, value: Value, lanes: Value) -> None:
    name, align = ("f32", 4) if value.type == _REALS else ("i8", 1)
    place = pointer(b, address, 0, value.type)
    arguments = [value, place, ir.Constant(_INDEX, align), _inside(b, lanes)]
    call(b, f"llvm.masked.store.v16{name}.p0", ir.VoidType(), arguments)


def _to_codes(b: Value, words: Sequence[Value], reals: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, low, high = (splat(b, b.fptrunc(r, ir.FloatType())) for r in reals)
    divided = b.fdiv(_load(b, source, _REALS, lanes), scale)
    moved = b.fadd(call(b, "llvm.roundeven.v16f32", _REALS, [divided]), zero)
    raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
    held = b.select(b.fcmp_ordered("<", raised, high), raised, high)
    _store(b, target, b.trunc(b.fptosi(held, _SUMS), _CODES), lanes)


def _to_reals(b: Value, words: Sequence[Value], reals: Sequence[Value]) -> None:
    source, target, lanes = words
    scale, zero, least, _ = reals
    codes = _load(b, source, _CODES, lanes)
    signed = splat(b, b.fcmp_ordered("<", least, ir.Constant(ir.DoubleType(), 0.0)))
    wide = b.select(signed, b.sext(codes, _SUMS), b.zext(codes, _SUMS))
    factor, shift = (splat(b, b.fptrunc(r, ir.FloatType())) for r in (scale, zero))
    _store(b, target, b.fmul(b.fsub(b.sitofp(wide, _REALS), shift), factor), lanes)


def _intrinsic(emit: Callable[..., None]) -> Any:
    def typed(_: Any, words: Any, reals: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = (
                [builder.extract_value(v, i) for i in range(len(t))]
                for t, v in zip(signature.args, values, strict=True)
            )
            emit(builder, *given)
            return context.get_dummy_value()

        return types.void(words, reals), generate

    return intrinsic(typed)


_codes, _reals = _intrinsic(_to_codes), _intrinsic(_to_reals)


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
