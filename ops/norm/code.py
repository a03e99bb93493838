"""Rows brought to mean 0 and variance 1. Imports numba: a door loads it, on first use."""

import math
from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable
from ops.native.memory import floats, record_at, share
from ops.norm.args import NORM
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
def _statistics(args: Any, row: int) -> Any:
    """Returns mean and factor of a row, and writes them where they are outputs."""
    count = args.length
    x = args.x + 4 * row * count
    mean = _mean(x, count) if args.centred != 0 else np.float32(0)
    factor = _factor(x, count, mean, args.epsilon)
    if args.means != 0:
        floats(args.means + 4 * row, 1)[0] = mean
        floats(args.factors + 4 * row, 1)[0] = factor
    return mean, factor


@entry()
def norm_rows(address: int, part: int, parts: int) -> None:
    """Normalises this part's rows, with scales and shifts that are as long as a row; `address`: a NORM record.

    The next row is read before a row is written. Where y is x, the last vector of a row may reach into the next row
    with lanes that it does not write; processors let a load that follows at once wait until such a store has ended.
    """
    args = record_at(address, NORM)
    count, scales, shifts = args.length, args.scales, args.shifts
    first, last = share(args.rows, part, parts)
    following = _statistics(args, first) if first < last else (np.float32(0), np.float32(0))
    for row in range(first, last):
        mean, factor = following
        if row + 1 < last:
            following = _statistics(args, row + 1)
        x, y = args.x + 4 * row * count, args.y + 4 * row * count
        if shifts != 0:
            row_norm_shifted(y, count, x, scales, shifts, mean, factor)
        else:
            row_norm(y, count, x, scales, mean, factor)


@entry()
def norm_channels(address: int, part: int, parts: int) -> None:
    """Normalises this part's rows, with a scale and a shift for each channel; `address`: a NORM record."""
    args = record_at(address, NORM)
    count, rows, channels = args.length, args.image_rows, args.row_channels
    width = count // channels
    scales, shifts = floats(args.scales, rows * channels), floats(args.shifts, rows * channels)
    first, last = share(args.rows, part, parts)
    for row in range(first, last):
        mean, factor = _statistics(args, row)
        for i in range(channels):
            channel, offset = row % rows * channels + i, 4 * (row * count + i * width)
            row_affine(args.y + offset, width, args.x + offset, mean, factor * scales[channel], shifts[channel])
