"""LLVM code that copies elements, runs and blocks of 16 x 16 words of 32 bits that are turned.

Imports llvmlite: only modules of compiled code load it. Addresses and strides are words of 64 bits, in bytes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from ops.movement.kinds import BLOCK

Value = Any
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)
_ROW = ir.VectorType(_INDEX, BLOCK)


def _pointer(builder: Value, address: Value, kind: Value) -> Value:
    return builder.inttoptr(address, kind.as_pointer())


def _function(emit: Callable[..., Value], arguments: int) -> Any:
    """A function of so many words that becomes the code of `emit`; it returns a word."""

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return emit(builder, *(builder.extract_value(values[0], i) for i in range(arguments)))

    def typed(_: Any, words: Any) -> Any:
        return types.int64(words), generate

    return intrinsic(typed)


def _loader(item: int) -> Callable[..., Value]:
    kind = ir.IntType(8 * item)

    def emit(builder: Value, address: Value) -> Value:
        found = builder.load(_pointer(builder, address, kind), align=item, typ=kind)
        return builder.zext(found, _WORD) if item < 8 else found

    return emit


def _storer(item: int) -> Callable[..., Value]:
    kind = ir.IntType(8 * item)

    def emit(builder: Value, address: Value, value: Value) -> Value:
        kept = builder.trunc(value, kind) if item < 8 else value
        builder.store(kept, _pointer(builder, address, kind), align=item)
        return value

    return emit


def _copy_bytes(builder: Value, target: Value, source: Value, count: Value) -> Value:
    byte = ir.IntType(8)
    pointers = [_pointer(builder, target, byte), _pointer(builder, source, byte)]
    name, last = "llvm.memcpy.p0.p0.i64", ir.Constant(ir.IntType(1), 0)
    known = builder.module.globals.get(name)
    if known is None:
        kind = ir.FunctionType(ir.VoidType(), [pointers[0].type, pointers[1].type, _WORD, last.type])
        known = ir.Function(builder.module, kind, name)
    builder.call(known, [*pointers, count, last])
    return count


def _turn(builder: Value, source: Value, source_hop: Value, target: Value, target_hop: Value) -> Value:
    """Four perfect shuffles turn the bits of (row, lane) half around."""
    rows = []
    for i in range(BLOCK):
        place = builder.add(source, builder.mul(source_hop, ir.Constant(_WORD, i)))
        rows.append(builder.load(_pointer(builder, place, _ROW), align=4, typ=_ROW))
    half = BLOCK // 2
    orders = [_indices([start + i // 2 + BLOCK * (i % 2) for i in range(BLOCK)]) for start in (0, half)]
    for _ in range(4):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [builder.shuffle_vector(a, b, order) for a, b in pairs for order in orders]
    for i, row in enumerate(rows):
        place = builder.add(target, builder.mul(target_hop, ir.Constant(_WORD, i)))
        builder.store(row, _pointer(builder, place, _ROW), align=4)
    return source


def _indices(numbers: Sequence[int]) -> Value:
    return ir.Constant(ir.VectorType(_INDEX, len(numbers)), list(numbers))


def _braider(count: int) -> Callable[..., Value]:
    """Writes element j of row i to place j * count + i; two to four rows of 16."""

    def emit(builder: Value, source: Value, source_hop: Value, target: Value) -> Value:
        rows = []
        for i in range(count):
            place = builder.add(source, builder.mul(source_hop, ir.Constant(_WORD, i)))
            rows.append(builder.load(_pointer(builder, place, _ROW), align=4, typ=_ROW))
        order = [BLOCK * i + j for j in range(BLOCK) for i in range(count)]
        if count == 2:
            braid = builder.shuffle_vector(*rows, _indices(order))
        else:
            pair = _indices(range(2 * BLOCK))
            front, back = builder.shuffle_vector(*rows[:2], pair), builder.shuffle_vector(rows[2], rows[-1], pair)
            braid = builder.shuffle_vector(front, back, _indices(order))
        builder.store(braid, _pointer(builder, target, braid.type), align=4)
        return source

    return emit


load_1, load_2, load_4, load_8 = (_function(_loader(n), 1) for n in (1, 2, 4, 8))
"""f((address,)): the element there."""
store_1, store_2, store_4, store_8 = (_function(_storer(n), 2) for n in (1, 2, 4, 8))
"""f((address, element))"""
copy_bytes = _function(_copy_bytes, 3)
"""f((target, source, count))"""
braid_2, braid_3, braid_4 = (_function(_braider(n), 3) for n in (2, 3, 4))
"""f((source, source_hop, target)): two to four rows of 16 elements to one row, by turns an element of each."""
turn = _function(_turn, 4)
"""f((source, source_hop, target, target_hop)): element j of row i to element i of row j, 16 of each."""
