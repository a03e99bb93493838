"""The elements that moved windows read, tap after tap. Imports numba: a door loads it, on first use.

Sums and products are in the order of the kernel of numpy, so that both give the same bits.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import array_at, jitable
from ops.native.memory import record_at, share
from ops.spatial.args import DEFORMED
from ops.tensor.spec import Array


def _splitting(dtype: Any) -> Any:
    """Returns the function that gives the elements beside a place and their weights, in numbers of one type."""
    zero, one = dtype(0), dtype(1)

    @jitable
    def element(place: Any, length: int) -> Any:
        """Returns a whole place as an element that exists, and whether it is that element, as a factor."""
        inside = one if place >= zero and place < dtype(length) else zero
        moved = place if place > zero else zero
        return int(moved if moved < dtype(length - 1) else dtype(length - 1)), inside

    @jitable
    def split(place: Any, length: int) -> Any:
        low = np.floor(place)
        rest = place - low
        below, first = element(low, length)
        above, second = element(low + one, length)
        return below, above, (one - rest) * first, rest * second

    return split


@jitable
def _write(image: Array, y: Array, at: tuple[int, int], corners: Any, factor: Any) -> None:
    """Writes one place of one tap for all channels; neighbouring places lie in one cache line."""
    (tap, place), ((top, bottom, a, b), (left, right, p, q)) = at, corners
    first, second, third, fourth = a * p, a * q, b * p, b * q
    for c in range(len(image)):
        one, two = image[c, top, left] * first, image[c, top, right] * second
        three, four = image[c, bottom, left] * third, image[c, bottom, right] * fourth
        y[c, tap, place] = (one + two + three + four) * factor


def _declare(dtype: Any) -> None:
    """Declares read_windows_DTYPE, which reads the windows of this part; the arguments are a DEFORMED record."""
    split, one = _splitting(dtype), dtype(1)

    @jitable
    def start(args: Any, axis: int, output: int, tap: int) -> Any:
        return dtype(output * args.strides[axis] - args.begins[axis]) + dtype(tap * args.dilations[axis])

    @entry(fastmath=EXACT, name=f"read_windows_{np.dtype(dtype).name}")
    def read_windows(address: int, part: int, parts: int) -> None:
        args = record_at(address, DEFORMED)
        images, height, width = args.images, args.lengths[0], args.lengths[1]
        taps, places = args.kernel[0] * args.kernel[1], args.outputs[0] * args.outputs[1]
        x = array_at(args.x, (images, args.channels, height, width), dtype)
        y = array_at(args.y, (images, args.channels, taps, places), dtype)
        offset = array_at(args.offset, (images, taps, 2, places), dtype)
        mask = array_at(args.mask, (images, taps, places), dtype)
        first, last = share(images * taps, part, parts)
        for job in range(first, last):
            n, tap = job // taps, job % taps
            for o in range(places):
                row = start(args, 0, o // args.outputs[1], tap // args.kernel[1]) + offset[n, tap, 0, o]
                column = start(args, 1, o % args.outputs[1], tap % args.kernel[1]) + offset[n, tap, 1, o]
                factor = mask[n, tap, o] if args.mask else one
                _write(x[n], y[n], (tap, o), (split(row, height), split(column, width)), factor)


for _dtype in (np.float32, np.float64):
    _declare(_dtype)
