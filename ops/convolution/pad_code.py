"""Copies into dense, channels-last tensors with a margin of zeros, compiled.

Imports numba: `ops.native.door` loads it, on first use.
"""

import numpy as np
from numba.extending import register_jitable

from ops.convolution import pad_args as at
from ops.native.memory import floats, share, word
from ops.tensor.spec import Array

_RGB = 3


@register_jitable
def _copy_three(x: int, apart: int, row: Array, count: int) -> None:
    """Three channels, each dense in itself, to elements side by side."""
    red, green, blue = floats(x, count), floats(x + apart, count), floats(x + 2 * apart, count)
    for i in range(count):
        row[3 * i], row[3 * i + 1], row[3 * i + 2] = red[i], green[i], blue[i]


@register_jitable
def _copy_any(x: int, hops: tuple[int, int], row: Array, counts: tuple[int, int]) -> None:
    """`counts` pixels and channels, `hops` bytes apart."""
    pixels, channels = counts
    for c in range(channels):
        for i in range(pixels):
            row[i * channels + c] = floats(x + i * hops[0] + c * hops[1], 1)[0]


@register_jitable
def _copy_row(words: int, x: int, row: Array) -> None:
    """The pixels of a row of x, of which there are as many as have room."""
    channels, hop, apart = word(words, at.CHANNELS), word(words, at.HOPS + 3), word(words, at.HOPS + 4)
    count = len(row) // channels
    if apart == 4 and hop == 4 * channels:
        row[:] = floats(x, len(row))
    elif channels == _RGB and hop == 4:
        _copy_three(x, apart, row, count)
    else:
        _copy_any(x, (hop, apart), row, (count, channels))


@register_jitable
def _row(words: int, number: int, row: Array) -> None:
    """Writes row `number` of the copy."""
    height, depth = word(words, at.PADDED + 1), word(words, at.PADDED)
    h = number % height - word(words, at.BEGINS + 1)
    d = number // height % depth - word(words, at.BEGINS)
    if not (0 <= h < word(words, at.SIZES + 1) and 0 <= d < word(words, at.SIZES)):
        row[:] = np.float32(0)
        return
    channels, begin = word(words, at.CHANNELS), word(words, at.BEGINS + 2)
    first = min(begin * channels, len(row))
    last = min((begin + word(words, at.SIZES + 2)) * channels, len(row))
    row[:first], row[last:] = np.float32(0), np.float32(0)
    image = number // (height * depth)
    x = word(words, at.X) + image * word(words, at.HOPS) + d * word(words, at.HOPS + 1) + h * word(words, at.HOPS + 2)
    if first < last:
        _copy_row(words, x, row[first:last])


def pad(words: int, part: int, parts: int) -> None:
    """Copies x with the words of ops.convolution.pad_args; what has no room behind the margin is left out."""
    length = word(words, at.PADDED + 2) * word(words, at.CHANNELS)
    rows = word(words, at.IMAGES) * word(words, at.PADDED) * word(words, at.PADDED + 1)
    first, last = share(rows, part, parts)
    for number in range(first, last):
        _row(words, number, floats(word(words, at.Y) + 4 * number * length, length))
