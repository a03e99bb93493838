"""Local response normalization of channels-last pixels, compiled. Imports numba: a door loads it."""

from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable
from ops.native.intrinsics import stack
from ops.native.memory import floats, record_at, share
from ops.norm.args import LRN, MOST_CHANNELS

_scratch = stack(3 * 4 * MOST_CHANNELS)


@jitable
def _power(sums: Any, beta: float) -> None:
    """Computes sums ** -beta in place, by roots where beta allows: vectors have an instruction for them."""
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


@entry()
def normalise(address: int, part: int, parts: int) -> None:
    """Computes this part's pixels; the arguments are an LRN record of `ops.norm.args`."""
    args = record_at(address, LRN)
    channels, size = args.channels, args.size
    factor, bias, beta = np.float32(args.factor), np.float32(args.bias), args.beta
    scratch = _scratch()
    pixel = floats(scratch, channels)
    squares, sums = floats(scratch + 4 * MOST_CHANNELS, channels), floats(scratch + 8 * MOST_CHANNELS, channels)
    first, last = share(args.pixels, part, parts)
    for number in range(first, last):
        x = floats(args.x + number * args.x_pitch, channels)
        y = floats(args.y + number * args.y_pitch, channels)
        for c in range(channels):
            pixel[c] = x[c]
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
            y[c] = pixel[c] * sums[c]
