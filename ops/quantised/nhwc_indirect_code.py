"""Where the windows of a block of tiles lie, compiled: an address for each tap of each pixel, in a table on the stack.

After Dukhan, "The Indirect Convolution Algorithm" (2019), where such a table is kept for all pixels. Imports numba:
modules of compiled code alone import it.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, register_jitable

from ops.native.emit.byte_tile import ROWS
from ops.native.memory import longs, share, word
from ops.quantised import nhwc_args as at
from ops.tensor.spec import Array

Span = tuple[int, int]


def stack(count: int) -> Any:
    """A function without arguments: the address of so many words on the stack, at the start of a cache line."""

    def typed(_: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
            with builder.goto_entry_block():
                buffer = builder.alloca(ir.ArrayType(ir.IntType(64), count))
            buffer.align = 64
            return builder.ptrtoint(buffer, ir.IntType(64))

        return types.int64(), generate

    return intrinsic(typed)


@register_jitable
def ceil(number: int, step: int) -> int:
    """Steps that cover a number."""
    return (number + step - 1) // step


@register_jitable
def split(tiles: int, panels: int, part: int, parts: int) -> tuple[Span, Span]:
    """The tiles and the panels of a part: as even as can be, and rather few panels than few tiles."""
    best, across = tiles * panels + 1, 1
    for columns in range(1, parts + 1):
        if parts % columns == 0:
            most = ceil(tiles, parts // columns) * ceil(panels, columns)
            if most < best:
                best, across = most, columns
    return share(tiles, part // across, parts // across), share(panels, part % across, across)


@register_jitable
def outputs(words: int) -> int:
    """Pixels of y."""
    total: int = word(words, at.OUTPUTS) * word(words, at.OUTPUTS + 1)
    total *= word(words, at.OUTPUTS + 2) * word(words, at.OUTPUTS + 3)
    return total


@register_jitable
def pixels_of(words: int, tile: int) -> Span:
    """The outputs of a tile: all tiles have as many, or one less."""
    total = outputs(words)
    first, last = share(total, tile, ceil(total, ROWS))
    return first, last


@register_jitable
def runs_of(words: int) -> int:
    """Taps of a window."""
    runs: int = word(words, at.KERNEL) * word(words, at.KERNEL + 1) * word(words, at.KERNEL + 2)
    return runs


@register_jitable
def _place(words: int, places: Array, pixels: Span, group: int) -> None:
    """Where the windows of these pixels begin: address, and place along the three dimensions; a row for each."""
    first, last = pixels
    od, oh, ow = word(words, at.OUTPUTS + 1), word(words, at.OUTPUTS + 2), word(words, at.OUTPUTS + 3)
    x, line, plane, image = first % ow, first // ow, first // (ow * oh), first // (ow * oh * od)
    y, z = line % oh, plane % od
    base = word(words, at.X) + group * word(words, at.GROUP_BYTES)
    for i in range(last - first):
        d = z * word(words, at.STRIDES) - word(words, at.BEGINS)
        h = y * word(words, at.STRIDES + 1) - word(words, at.BEGINS + 1)
        w = x * word(words, at.STRIDES + 2) - word(words, at.BEGINS + 2)
        place = base + image * word(words, at.HOPS) + d * word(words, at.HOPS + 1)
        places[i] = place + h * word(words, at.HOPS + 2) + w * word(words, at.HOPS + 3)
        places[16 + i], places[32 + i], places[48 + i] = d, h, w
        x += 1
        if x == ow:
            x, y = 0, y + 1
        if y == oh:
            y, z = 0, z + 1
        if z == od:
            z, image = 0, image + 1


@register_jitable
def _point(words: int, table: Array, places: Array) -> None:
    """The addresses of all taps: (runs, ROWS). What lies behind the last pixel is nowhere, and read by nobody."""
    zeros, row = word(words, at.ZEROS), 0
    depth, height = np.uint64(word(words, at.SIZES)), np.uint64(word(words, at.SIZES + 1))
    width = np.uint64(word(words, at.SIZES + 2))
    for kd in range(word(words, at.KERNEL)):
        dd = kd * word(words, at.DILATIONS)
        for kh in range(word(words, at.KERNEL + 1)):
            dh = kh * word(words, at.DILATIONS + 1)
            for kw in range(word(words, at.KERNEL + 2)):
                dw = kw * word(words, at.DILATIONS + 2)
                hop = dd * word(words, at.HOPS + 1) + dh * word(words, at.HOPS + 2) + dw * word(words, at.HOPS + 3)
                for i in range(ROWS):
                    inside = np.uint64(places[16 + i] + dd) < depth
                    inside &= np.uint64(places[32 + i] + dh) < height
                    inside &= np.uint64(places[48 + i] + dw) < width
                    table[row + i] = places[i] + hop if inside else zeros
                row += ROWS


@register_jitable
def fill(words: int, buffer: int, places: int, tiles: Span, group: int) -> None:
    """The table of a block of tiles, at the address `room`; `places` is room for 64 words."""
    size, found = ROWS * runs_of(words), longs(places, 64)
    for i in range(64):
        found[i] = 0
    for tile in range(tiles[0], tiles[1]):
        _place(words, found, pixels_of(words, tile), group)
        _point(words, longs(buffer + 8 * size * (tile - tiles[0]), size), found)
