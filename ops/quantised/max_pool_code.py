"""Maximum pooling of channels-last bytes, compiled. Imports numba: loaded by ops.native.door."""

from collections.abc import Sequence

from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import register_jitable

from ops.native.emit.builder import BYTE, WORD, Value, advance, constant, load, loop, splat, store
from ops.native.intrinsics import intrinsic_of
from ops.native.memory import share, word

X, X_PITCH, Y, Y_PITCH, IMAGES, CHANNELS, FLIP = range(7)
SIZES, OUTPUTS, KERNEL, STRIDES, DILATIONS, BEGINS = range(7, 25, 3)
LANES = 64
_BYTES = ir.VectorType(BYTE, LANES)


def _emit(b: Value, *words: Value) -> None:
    source, target, lanes, flip, counts, hops = *words[:4], words[4:7], words[7:]
    whole = b.select(b.icmp_signed("<", lanes, ir.Constant(WORD, LANES)), lanes, ir.Constant(WORD, LANES))
    mask = b.icmp_unsigned("<", ir.Constant(_BYTES, list(range(LANES))), splat(b, b.trunc(whole, BYTE), LANES))
    flipped = splat(b, b.trunc(flip, BYTE), LANES)

    def walk(axis: int, place: Value, largest: list[Value]) -> Sequence[Value]:
        if axis == 3:
            codes = b.xor(load(b, place, _BYTES, mask), flipped)
            return [b.select(b.icmp_unsigned(">", codes, largest[0]), codes, largest[0])]
        step = lambda number, inner: walk(axis + 1, advance(b, place, number, hops[axis]), inner)  # noqa: E731
        return loop(b, counts[axis], largest, step)

    (largest,) = walk(0, source, [constant(_BYTES, 0)])
    store(b, target, b.xor(largest, flipped), mask)


_window = intrinsic_of(_emit)


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
