"""Pooling of (N, C, spatial...) in float32, compiled: rows of outputs, tap by tap, vectors along the row.

Imports numba: ops.native.door loads it, on first use.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import floats, ints, share, word
from ops.pool.kinds import AVERAGE_PADDED, LARGEST
from ops.windows import planes_emit as vectors

_maxima_near, _maxima_halved, _maxima_far = (intrinsic_of_two(vectors.maxima(n)) for n in (1, 2, 0))
_means_near, _means_halved, _means_far = (intrinsic_of_two(vectors.means(n)) for n in (1, 2, 0))
_NAN = np.int32(0x7FFFFFFF)


@register_jitable
def _clip(words: int, axis: int, output: int) -> tuple[int, int, int, int]:
    """What a window reads along an axis: its first element inside, the taps [first, last) there, those that count."""
    size, kernel, dilation = word(words, 6 + axis), word(words, 12 + axis), word(words, 18 + axis)
    start = output * word(words, 15 + axis) - word(words, 21 + axis)
    first = min(max(-(start // dilation), 0), kernel)
    last = max(first, min(kernel, (size - 1 - start) // dilation + 1))
    counted = last - first
    if word(words, 0) == AVERAGE_PADDED:
        counted = min(kernel, max((size + word(words, 24 + axis) - 1 - start) // dilation + 1, 0))
    return start + first * dilation, first, last, counted


@register_jitable
def _tile(kind: int, stride: int, words: Any, numbers: Any) -> None:
    if kind == LARGEST:
        if stride == 1:
            _maxima_near(words, numbers)
        elif stride == 2:
            _maxima_halved(words, numbers)
        else:
            _maxima_far(words, numbers)
    elif stride == 1:
        _means_near(words, numbers)
    elif stride == 2:
        _means_halved(words, numbers)
    else:
        _means_far(words, numbers)


@register_jitable
def _row(words: int, row: int) -> None:
    """One row of outputs of one channel."""
    kind, height, width = word(words, 0), word(words, 7), word(words, 8)
    deep, high, wide = word(words, 9), word(words, 10), word(words, 11)
    plane, oz, oy = row // (deep * high), row // high % deep, row % high
    image, channel = plane // word(words, 3), plane % word(words, 3)
    z, z0, z1, some = _clip(words, 0, oz)
    v, v0, v1, others = _clip(words, 1, oy)
    x = word(words, 1) + image * word(words, 4) + 4 * ((channel * word(words, 6) + z) * height + v) * width
    y = word(words, 2) + image * word(words, 5) + 4 * ((channel * deep + oz) * high + oy) * wide
    taps = z1 - z0, v1 - v0, 4 * word(words, 18) * height * width, 4 * word(words, 19) * width
    taps_x, step, stride, begin = word(words, 14), word(words, 20), word(words, 17), word(words, 23)
    counts = (-begin, width + word(words, 26)) if kind == AVERAGE_PADDED else (0, width)
    for ox in range(0, wide, 16):
        start = x, y + 4 * ox, min(wide - ox, 16), ox * stride - begin, width
        _tile(kind, stride, start + counts + taps + (taps_x, step, stride), (float(some * others),))


def pool(words: int, part: int, parts: int) -> None:
    """Kind, x, y, channels, bytes from image to image of x and y, the geometry of the windows, images."""
    first, last = share(word(words, 27) * word(words, 3) * word(words, 9) * word(words, 10), part, parts)
    for row in range(first, last):
        _row(words, row)


@register_jitable
def _largest(bits: Any) -> Any:
    """The bits of the largest float, compared as integers in the same order; any NaN is larger than all."""
    most = np.int32(-0x7FFFFFFF)
    for i in range(len(bits)):
        magnitude = bits[i] & np.int32(0x7FFFFFFF)
        key = magnitude if bits[i] >= 0 else -magnitude
        key = _NAN if magnitude > np.int32(0x7F800000) else key
        most = max(most, key)
    return most


def pool_all(words: int, part: int, parts: int) -> None:
    """Kind, x, y, rows, elements of a row: the largest of each dense row, or its mean."""
    rows, length = word(words, 3), word(words, 4)
    first, last = share(rows, part, parts)
    y = floats(word(words, 2), rows)
    for row in range(first, last):
        if word(words, 0) == LARGEST:
            key = _largest(ints(word(words, 1) + 4 * row * length, length))
            if key == _NAN:
                y[row] = np.nan
            elif length == 0:
                y[row] = -np.inf
            else:
                ints(word(words, 2), rows)[row] = key if key >= 0 else np.int32(-0x80000000) | np.int32(-key)
        else:
            x, total = floats(word(words, 1) + 4 * row * length, length), 0.0
            for start in range(0, length, 256):
                part_of = x[start : start + 256]
                some: Any = np.float32(0)
                for i in range(len(part_of)):
                    some += part_of[i]
                total += some
            y[row] = total / length
