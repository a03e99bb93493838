"""The gradient of maximum pooling, compiled: where each maximum lies is searched again, window by window.

Imports numba: a door loads it, on first use. All work is one part's, since the scratch arrays are those of
one row of windows.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import array_at, fill, jitable
from ops.native.memory import ints, record_at
from ops.pool.args import MAXIMA
from ops.tensor.spec import Array


@jitable
def _channels(address: int, count: int, lengths: Any, dtype: Any) -> Any:
    """Returns a dense array of (channels, depth, height, width)."""
    return array_at(address, (count, lengths[0], lengths[1], lengths[2]), dtype)


@jitable
def _search_taps(args: Any, planes: Array, position: tuple[int, int], best: Array, places: Array) -> None:
    """Writes the maxima of a row of windows in steps of one, and their places: tap by tap and without a branch.

    So vectors can be used. The windows between strides are computed too, which avoids reading every second pixel;
    tools/bench_layers.py times pooling.
    """
    (depth, height, width), (a, b) = planes.shape, position
    taps, kh, kw = args.kernel[0] * args.kernel[1] * args.kernel[2], args.kernel[1], args.kernel[2]
    z, v = a * args.strides[0] - args.begins[0], b * args.strides[1] - args.begins[1]
    fill(best, -np.inf)
    fill(places, -1)
    for tap in range(taps):
        i, j = z + tap // (kh * kw) * args.dilations[0], v + tap // kw % kh * args.dilations[1]
        shift = tap % kw * args.dilations[2] - args.begins[2]
        first, last = max(0, -shift), min(len(best), width - shift)
        if 0 <= i < depth and 0 <= j < height and first < last:
            base, row = np.int32((i * height + j) * width + first + shift), planes[i, j, first + shift :]
            top, place = best[first:last], places[first:last]
            for c in range(len(top)):
                better = (row[c] > top[c]) | (row[c] != row[c]) | (place[c] < 0)  # NaN wins; something always does
                top[c] = row[c] if better else top[c]
                place[c] = base + np.int32(c) if better else place[c]


@jitable
def _scatter_maxima(address: int, dtype: Any) -> None:
    args = record_at(address, MAXIMA)
    count, span, step = args.channels, args.span, args.strides[2]
    dy = _channels(args.dy, count, args.outputs, dtype)
    x = _channels(args.x, count, args.sizes, dtype)
    best, places = array_at(args.best, (span,), dtype), ints(args.places, span)
    size = args.sizes[0] * args.sizes[1] * args.sizes[2]
    flat = array_at(args.dx, (count, size), dtype)
    fill(array_at(args.dx, (count * size,), dtype), 0)
    for job in range(count * dy.shape[1] * dy.shape[2]):
        channel, a, b = job // (dy.shape[1] * dy.shape[2]), job // dy.shape[2] % dy.shape[1], job % dy.shape[2]
        _search_taps(args, x[channel], (a, b), best, places)
        for c in range(dy.shape[3]):
            if places[c * step] >= 0:
                flat[channel, places[c * step]] += dy[channel, a, b, c]


@entry(fastmath=EXACT)
def scatter_maxima_float32(address: int, part: int, _: int) -> None:
    """Adds each dy to dx where its window of x has its maximum, in float32; the arguments are a MAXIMA record.

    Of several maxima it is the first; a window that is all padding has none.
    """
    if part == 0:
        _scatter_maxima(address, np.float32)


@entry(fastmath=EXACT)
def scatter_maxima_float64(address: int, part: int, _: int) -> None:
    """Adds each dy to dx where its window of x has its maximum, in float64; see `scatter_maxima_float32`."""
    if part == 0:
        _scatter_maxima(address, np.float64)
