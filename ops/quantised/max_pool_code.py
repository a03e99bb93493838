"""Maximum pooling of channels-last bytes, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, register_jitable

from ops.native.emit.byte_tile import loop
from ops.native.memory import share, word

Value = Any
X, X_PITCH, Y, Y_PITCH, IMAGES, CHANNELS, FLIP = range(7)
SIZES, OUTPUTS, KERNEL, STRIDES, DILATIONS, BEGINS = range(7, 25, 3)
LANES = 64
_WORD, _BYTE = ir.IntType(64), ir.IntType(8)
_BYTES, _BITS = ir.VectorType(_BYTE, LANES), ir.VectorType(ir.IntType(1), LANES)


def _splat(b: Value, byte: Value) -> Value:
    one = b.insert_element(ir.Constant(_BYTES, ir.Undefined), byte, ir.Constant(ir.IntType(32), 0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return b.shuffle_vector(one, ir.Constant(_BYTES, ir.Undefined), order)


def _call(b: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    known = b.module.globals.get(name)
    if known is None:
        known = ir.Function(b.module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return b.call(known, arguments)


def _emit(b: Value, words: Sequence[Value]) -> None:
    source, target, lanes, flip, counts, hops = *words[:4], words[4:7], words[7:]
    numbers = ir.Constant(_BYTES, list(range(LANES)))
    whole = b.select(b.icmp_signed("<", lanes, ir.Constant(_WORD, LANES)), lanes, ir.Constant(_WORD, LANES))
    inside = b.icmp_unsigned("<", numbers, _splat(b, b.trunc(whole, _BYTE)))
    zeros, align = ir.Constant(_BYTES, [0] * LANES), ir.Constant(ir.IntType(32), 1)
    turned = _splat(b, b.trunc(flip, _BYTE))

    def walk(axis: int, place: Value, held: list[Value]) -> Sequence[Value]:
        if axis == 3:
            pointer = b.inttoptr(place, _BYTES.as_pointer())
            found = _call(b, "llvm.masked.load.v64i8.p0", _BYTES, [pointer, align, inside, zeros])
            found = b.xor(found, turned)
            return [b.select(b.icmp_unsigned(">", found, held[0]), found, held[0])]
        step = lambda number, inner: walk(axis + 1, b.add(place, b.mul(number, hops[axis])), inner)  # noqa: E731
        return loop(b, counts[axis], held, step)

    (largest,) = walk(0, source, [zeros])
    arguments = [b.xor(largest, turned), b.inttoptr(target, _BYTES.as_pointer()), align, inside]
    _call(b, "llvm.masked.store.v64i8.p0", ir.VoidType(), arguments)


def _window_type(_: Any, words: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _emit(builder, [builder.extract_value(values[0], i) for i in range(len(signature.args[0]))])
        return context.get_dummy_value()

    return types.void(words), generate


_window: Any = intrinsic(_window_type)


@register_jitable
def _taps(words: int, axis: int, output: int) -> tuple[int, int]:
    """The first element that a window reads along an axis, and how many."""
    start = output * word(words, STRIDES + axis) - word(words, BEGINS + axis)
    dilation, count, size = word(words, DILATIONS + axis), word(words, KERNEL + axis), word(words, SIZES + axis)
    first = min(max(-(start // dilation), 0), count)
    last = max(first, min(count, (size - 1 - start) // dilation + 1))
    return start + first * dilation, last - first


def largest(words: int, part: int, parts: int) -> None:
    """Writes the largest bytes of all windows; FLIP are bits to turn before and after. Words: see the numbers above."""
    depth, height, width = word(words, OUTPUTS), word(words, OUTPUTS + 1), word(words, OUTPUTS + 2)
    x, y, pitch, y_pitch = word(words, X), word(words, Y), word(words, X_PITCH), word(words, Y_PITCH)
    hops = (
        word(words, SIZES + 1) * word(words, SIZES + 2) * pitch,
        word(words, SIZES + 2) * pitch,
        pitch,
    )
    steps = hops[0] * word(words, DILATIONS), hops[1] * word(words, DILATIONS + 1), pitch * word(words, DILATIONS + 2)
    channels, flip = word(words, CHANNELS), word(words, FLIP)
    first, last = share(word(words, IMAGES) * depth * height, part, parts)
    for line in range(first, last):
        n, z, v = line // (depth * height), line // height % depth, line % height
        iz, nz = _taps(words, 0, z)
        iv, nv = _taps(words, 1, v)
        base = x + n * word(words, SIZES) * hops[0] + iz * hops[0] + iv * hops[1]
        for u in range(width):
            iu, nu = _taps(words, 2, u)
            target = y + (line * width + u) * y_pitch
            for c in range(0, channels, LANES):
                place = base + iu * pitch + c
                _window((place, target + c, channels - c, flip, nz, nv, nu, steps[0], steps[1], steps[2]))
