"""Rows brought to mean 0 and variance 1. Imports numba: `ops.native.door` loads it, on first use.

Words: rows, elements of one, addresses of x, y, scales, shifts (0: none), means and factors (0: not wanted); whether
the mean is subtracted; epsilon; and for channels: how many rows an image has, and channels a row.
"""

import math
from typing import Any

import numpy as np

from ops.native.memory import floats, jitable, real, share, word
from ops.vector.row_code import CHUNK, row_affine, row_norm, row_norm_shifted, row_sum, row_sum_square


@jitable
def _mean(x: int, count: int) -> Any:
    total = 0.0
    for first in range(0, count, CHUNK):
        total += row_sum(x + 4 * first, min(CHUNK, count - first), np.float32(0))
    return np.float32(total / count)


@jitable
def _factor(x: int, count: int, mean: Any, epsilon: float) -> Any:
    total = 0.0
    for first in range(0, count, CHUNK):
        total += row_sum_square(x + 4 * first, min(CHUNK, count - first), mean)
    return np.float32(1 / math.sqrt(total / count + epsilon))


@jitable
def _statistics(words: int, row: int) -> Any:
    """Mean and factor of a row, written where they are wanted."""
    count = word(words, 1)
    x = word(words, 2) + 4 * row * count
    mean = _mean(x, count) if word(words, 8) != 0 else np.float32(0)
    factor = _factor(x, count, mean, real(words, 9))
    if word(words, 6) != 0:
        floats(word(words, 6) + 4 * row, 1)[0] = mean
        floats(word(words, 7) + 4 * row, 1)[0] = factor
    return mean, factor


def norm_rows(words: int, part: int, parts: int) -> None:
    """Scales and shifts that are as long as a row."""
    count, scale, shift = word(words, 1), word(words, 4), word(words, 5)
    first, last = share(word(words, 0), part, parts)
    for row in range(first, last):
        mean, factor = _statistics(words, row)
        x, y = word(words, 2) + 4 * row * count, word(words, 3) + 4 * row * count
        if shift != 0:
            row_norm_shifted(y, count, x, scale, shift, mean, factor)
        else:
            row_norm(y, count, x, scale, mean, factor)


def norm_channels(words: int, part: int, parts: int) -> None:
    """A scale and a shift for each channel."""
    count, rows, each = word(words, 1), word(words, 10), word(words, 11)
    width = count // each
    scales, shifts = floats(word(words, 4), rows * each), floats(word(words, 5), rows * each)
    first, last = share(word(words, 0), part, parts)
    for row in range(first, last):
        mean, factor = _statistics(words, row)
        for i in range(each):
            channel, offset = row % rows * each + i, 4 * (row * count + i * width)
            x, y = word(words, 2) + offset, word(words, 3) + offset
            row_affine(y, width, x, mean, factor * scales[channel], shifts[channel])
