"""Tensors of 16 bits to float32 and back, rounded to nearest, ties to even. Imports numba: a door loads it."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import Decorator, jitable
from ops.half.args import AXES, CONVERT, FROM_BFLOAT, FROM_HALF, TO_BFLOAT, TO_HALF
from ops.native.memory import floats, ints, record_at, share, shorts

_intrinsic: Decorator = intrinsic
_SHORT, _HALF, _SINGLE = ir.IntType(16), ir.HalfType(), ir.FloatType()


@_intrinsic
def _widened(_: Any, bits: Any) -> Any:
    """Returns the float16 of these bits as float32."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.fpext(builder.bitcast(values[0], _HALF), _SINGLE)

    return types.float32(types.uint16), generate


@_intrinsic
def _narrowed(_: Any, value: Any) -> Any:
    """Returns the bits of the nearest float16."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.bitcast(builder.fptrunc(values[0], _HALF), _SHORT)

    return types.uint16(types.float32), generate


@jitable
def _row(kind: int, read: tuple[int, int], written: tuple[int, int], length: int) -> None:
    """Converts a row; each side is its address and its stride in elements."""
    (source, source_step), (target, target_step) = read, written
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
        _bits(kind, read, written, length)


@jitable
def _bits(kind: int, read: tuple[int, int], written: tuple[int, int], length: int) -> None:
    """Converts a row between bfloat16 and float32: the former is the upper half of the latter.

    A NaN keeps one bit of its upper half, as it would be infinity without any.
    """
    (source, source_step), (target, target_step) = read, written
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


@entry(needs=("f16c",))
def convert(address: int, part: int, parts: int) -> None:
    """Converts this part's share of the rows, which are those of the last axis; the arguments are a CONVERT record."""
    args = record_at(address, CONVERT)
    kind, lengths = args.kind, args.lengths
    read = 2 if kind in (FROM_HALF, FROM_BFLOAT) else 4
    written = 2 if kind in (TO_HALF, TO_BFLOAT) else 4
    first, last = share(lengths[0] * lengths[1] * lengths[2] * lengths[3], part, parts)
    for row in range(first, last):
        source, target, left = args.source, args.target, row
        for axis in range(AXES - 2, -1, -1):
            place = left % lengths[axis]
            left //= lengths[axis]
            source += read * place * args.source_strides[axis]
            target += written * place * args.target_strides[axis]
        _row(kind, (source, args.source_strides[4]), (target, args.target_strides[4]), lengths[4])
