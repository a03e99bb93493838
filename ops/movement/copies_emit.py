"""LLVM code that copies elements, runs and blocks of 16 x 16 words of 32 bits that are transposed.

Imports llvmlite: only modules of compiled code load it. Addresses and strides are words of 64 bits, in bytes.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from ops.movement.args import BLOCK
from ops.native.emit.builder import (
    BIT,
    BYTE,
    INTS,
    VOID,
    WORD,
    Value,
    advance,
    call,
    load,
    pointer,
    shuffled,
    store,
    transpose,
)
from ops.native.intrinsics import intrinsic_of


def _loader(item: int) -> Callable[..., Value]:
    kind = ir.IntType(8 * item)

    def emit(builder: Value, address: Value) -> Value:
        element = builder.load(pointer(builder, address, kind), align=item, typ=kind)
        return builder.zext(element, WORD) if item < 8 else element

    return emit


def _storer(item: int) -> Callable[..., Value]:
    kind = ir.IntType(8 * item)

    def emit(builder: Value, address: Value, value: Value) -> Value:
        element = builder.trunc(value, kind) if item < 8 else value
        builder.store(element, pointer(builder, address, kind), align=item)
        return value

    return emit


def _copy_bytes(builder: Value, target: Value, source: Value, count: Value) -> Value:
    places = [pointer(builder, address, BYTE) for address in (target, source)]
    call(builder, "llvm.memcpy.p0.p0.i64", VOID, [*places, count, ir.Constant(BIT, 0)])
    return count


def _rows(builder: Value, source: Value, source_hop: Value, count: int) -> list[Value]:
    return [load(builder, advance(builder, source, i, source_hop), INTS) for i in range(count)]


def _transpose(builder: Value, source: Value, source_hop: Value, target: Value, target_hop: Value) -> Value:
    for i, row in enumerate(transpose(builder, _rows(builder, source, source_hop, BLOCK))):
        store(builder, advance(builder, target, i, target_hop), row)
    return source


def _interleaver(count: int) -> Callable[..., Value]:
    """Returns the emitter that writes element j of row i to place j * count + i; two to four rows of 16."""

    def emit(builder: Value, source: Value, source_hop: Value, target: Value) -> Value:
        rows = _rows(builder, source, source_hop, count)
        order = shuffled(BLOCK * i + j for j in range(BLOCK) for i in range(count))
        if count == 2:
            result = builder.shuffle_vector(*rows, order)
        else:
            pair = shuffled(range(2 * BLOCK))
            front, back = builder.shuffle_vector(*rows[:2], pair), builder.shuffle_vector(rows[2], rows[-1], pair)
            result = builder.shuffle_vector(front, back, order)
        store(builder, target, result)
        return source

    return emit


def _compiled(emit: Callable[..., Value]) -> Any:
    return intrinsic_of(emit, returns=types.int64)


load_1, load_2, load_4, load_8 = (_compiled(_loader(n)) for n in (1, 2, 4, 8))
"""f((address,)): the element there."""
store_1, store_2, store_4, store_8 = (_compiled(_storer(n)) for n in (1, 2, 4, 8))
"""f((address, element))"""
copy_bytes = _compiled(_copy_bytes)
"""f((target, source, count))"""
interleave_2, interleave_3, interleave_4 = (_compiled(_interleaver(n)) for n in (2, 3, 4))
"""f((source, source_hop, target)): two to four rows of 16 elements to one row, by turns an element of each.

    a0 a1 a2 ...
    b0 b1 b2 ...   ->   a0 b0 c0 a1 b1 c1 a2 b2 c2 ...
    c0 c1 c2 ...
"""
transpose_16 = _compiled(_transpose)
"""f((source, source_hop, target, target_hop)): element j of row i to element i of row j, 16 of each."""
