"""Local response normalization of channels-last pixels, compiled. Imports numba: ops.native.door loads it."""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, register_jitable

from ops.native.memory import floats, real, share, word
from ops.norm.lrn_kinds import MOST_CHANNELS


def _typed_room(_: Any) -> Any:
    """The address of room on the stack for three pixels."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(ir.FloatType(), 3 * MOST_CHANNELS))
        return builder.ptrtoint(room, ir.IntType(64))

    return types.int64(), generate


_room: Any = intrinsic(_typed_room)


@register_jitable
def _power(sums: Any, beta: float) -> None:
    """sums ** -beta, in place; by roots where there are some, which vectors have."""
    one, minus = np.float32(1), np.float32(-beta)
    if beta == 0.75:
        for i in range(len(sums)):
            root = np.sqrt(sums[i])
            sums[i] = one / (root * np.sqrt(root))
    elif beta == 0.5:
        for i in range(len(sums)):
            sums[i] = one / np.sqrt(sums[i])
    elif beta == 1:
        for i in range(len(sums)):
            sums[i] = one / sums[i]
    else:
        for i in range(len(sums)):
            sums[i] = sums[i] ** minus


def normalise(words: int, part: int, parts: int) -> None:
    """x, y, pixels, channels, bytes from pixel to pixel of x and y, size; alpha / size, bias, beta."""
    channels, size = word(words, 3), word(words, 6)
    factor, bias, beta = np.float32(real(words, 7)), np.float32(real(words, 8)), real(words, 9)
    room = _room()
    held = floats(room, channels)
    squares, sums = floats(room + 4 * MOST_CHANNELS, channels), floats(room + 8 * MOST_CHANNELS, channels)
    first, last = share(word(words, 2), part, parts)
    for pixel in range(first, last):
        x = floats(word(words, 0) + pixel * word(words, 4), channels)
        y = floats(word(words, 1) + pixel * word(words, 5), channels)
        for c in range(channels):
            held[c] = x[c]
            squares[c] = x[c] * x[c]
            sums[c] = squares[c]
        for shift in range(-((size - 1) // 2), size // 2 + 1):
            low, high = max(0, -shift), min(channels, channels - shift)
            if shift != 0 and low < high:
                some, others = sums[low:high], squares[low + shift : high + shift]
                for c in range(high - low):
                    some[c] += others[c]
        for c in range(channels):
            sums[c] = sums[c] * factor + bias
        _power(sums, beta)
        for c in range(channels):
            y[c] = held[c] * sums[c]
