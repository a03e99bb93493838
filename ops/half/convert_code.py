"""Tensors of 16 bits to float32 and back, rounded to nearest, ties to even. Imports numba: a door loads it."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from ops.half.args import (
    FROM_BFLOAT,
    FROM_HALF,
    KIND,
    LENGTHS,
    SOURCE,
    SOURCE_STRIDES,
    TARGET,
    TARGET_STRIDES,
    TO_BFLOAT,
    TO_HALF,
)
from ops.native.memory import Decorator, floats, ints, jitable, share, shorts, word

_intrinsic: Decorator = intrinsic
_SHORT, _HALF, _SINGLE = ir.IntType(16), ir.HalfType(), ir.FloatType()


@_intrinsic
def _widened(_: Any, bits: Any) -> Any:
    """The float16 of these bits as float32."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.fpext(builder.bitcast(values[0], _HALF), _SINGLE)

    return types.float32(types.uint16), generate


@_intrinsic
def _narrowed(_: Any, value: Any) -> Any:
    """The bits of the nearest float16."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.bitcast(builder.fptrunc(values[0], _HALF), _SHORT)

    return types.uint16(types.float32), generate


@jitable
def _row(kind: int, there: tuple[int, int], here: tuple[int, int], length: int) -> None:
    # Of both sides: the address, and the steps in elements.
    (source, source_step), (target, target_step) = there, here
    reach, extent = (length - 1) * source_step + 1, (length - 1) * target_step + 1
    if kind == FROM_HALF:
        x, y = shorts(source, reach), floats(target, extent)
        if source_step == 1 and target_step == 1:
            for i in range(length):
                y[i] = _widened(x[i])
        else:
            for i in range(length):
                y[i * target_step] = _widened(x[i * source_step])
    elif kind == TO_HALF:
        z, half = floats(source, reach), shorts(target, extent)
        if source_step == 1 and target_step == 1:
            for i in range(length):
                half[i] = _narrowed(z[i])
        else:
            for i in range(length):
                half[i * target_step] = _narrowed(z[i * source_step])
    else:
        _bits(kind, there, here, length)


@jitable
def _bits(kind: int, there: tuple[int, int], here: tuple[int, int], length: int) -> None:
    # bfloat16 is the upper half of a float32; of a NaN, one bit of the upper half must stay.
    (source, source_step), (target, target_step) = there, here
    reach, extent = (length - 1) * source_step + 1, (length - 1) * target_step + 1
    if kind == FROM_BFLOAT:
        x, y = shorts(source, reach), ints(target, extent)
        for i in range(length):
            y[i * target_step] = x[i * source_step] << 16
    elif kind == TO_BFLOAT:
        z, upper = ints(source, reach), shorts(target, extent)
        for i in range(length):
            bits = z[i * source_step]
            rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
            upper[i * target_step] = (bits >> 16) | 0x40 if (bits & 0x7FFFFFFF) > 0x7F800000 else rounded
    else:
        same, copied = ints(source, reach), ints(target, extent)
        for i in range(length):
            copied[i * target_step] = same[i * source_step]


def convert(words: int, part: int, parts: int) -> None:
    """Every part has its share of the rows, which are those of the last axis."""
    kind, source, target = word(words, KIND), word(words, SOURCE), word(words, TARGET)
    a, b, c = word(words, LENGTHS), word(words, LENGTHS + 1), word(words, LENGTHS + 2)
    d, length = word(words, LENGTHS + 3), word(words, LENGTHS + 4)
    read = 2 if kind in (FROM_HALF, FROM_BFLOAT) else 4
    written = 2 if kind in (TO_HALF, TO_BFLOAT) else 4
    first, last = share(a * b * c * d, part, parts)
    for row in range(first, last):
        there, here, left = source, target, row
        for axis in range(3, -1, -1):
            size = word(words, LENGTHS + axis)
            place = left % size
            left //= size
            there += read * place * word(words, SOURCE_STRIDES + axis)
            here += written * place * word(words, TARGET_STRIDES + axis)
        _row(kind, (there, word(words, SOURCE_STRIDES + 4)), (here, word(words, TARGET_STRIDES + 4)), length)
