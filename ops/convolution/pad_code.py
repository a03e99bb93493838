"""Copies into dense, channels-last tensors with a margin of zeros, compiled.

Imports numba: a door loads it, on first use.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import copy, fill, jitable
from ops.convolution.args import PAD
from ops.native.memory import floats, record_at, share
from ops.tensor.spec import Array

_RGB = 3


@jitable
def _copy_three(x: int, apart: int, row: Array, count: int) -> None:
    """Interleaves three channels, each dense."""
    red, green, blue = floats(x, count), floats(x + apart, count), floats(x + 2 * apart, count)
    for i in range(count):
        row[3 * i], row[3 * i + 1], row[3 * i + 2] = red[i], green[i], blue[i]


@jitable
def _copy_any(x: int, hops: tuple[int, int], row: Array, counts: tuple[int, int]) -> None:
    """Copies `counts` pixels and channels, `hops` bytes apart."""
    pixels, channels = counts
    for c in range(channels):
        for i in range(pixels):
            row[i * channels + c] = floats(x + i * hops[0] + c * hops[1], 1)[0]


@jitable
def _copy_row(args: Any, x: int, row: Array) -> None:
    """Copies as many pixels of a row of x as fit."""
    channels, hop, apart = args.channels, args.hops[3], args.hops[4]
    count = len(row) // channels
    if apart == 4 and hop == 4 * channels:
        copy(floats(x, len(row)), row)
    elif channels == _RGB and hop == 4:
        _copy_three(x, apart, row, count)
    else:
        _copy_any(x, (hop, apart), row, (count, channels))


@jitable
def _write_row(args: Any, number: int, row: Array) -> None:
    """Writes row `number` of the copy."""
    depth, height, channels, begin = args.padded[0], args.padded[1], args.channels, args.begins[2]
    h, d = number % height - args.begins[1], number // height % depth - args.begins[0]
    if not (0 <= h < args.sizes[1] and 0 <= d < args.sizes[0]):
        fill(row, np.float32(0))
        return
    first = min(begin * channels, len(row))
    last = min((begin + args.sizes[2]) * channels, len(row))
    fill(row[:first], np.float32(0))
    fill(row[last:], np.float32(0))
    image = number // (height * depth)
    x = args.x + image * args.hops[0] + d * args.hops[1] + h * args.hops[2]
    if first < last:
        _copy_row(args, x, row[first:last])


@entry()
def pad(address: int, part: int, parts: int) -> None:
    """Copies x; the arguments are a PAD record. Elements of x that do not fit behind the margin are left out."""
    args = record_at(address, PAD)
    length = args.padded[2] * args.channels
    first, last = share(args.images * args.padded[0] * args.padded[1], part, parts)
    for number in range(first, last):
        _write_row(args, number, floats(args.y + 4 * number * length, length))
