"""Channels-last convolution by tiles, compiled. Imports numba: `ops.native.door` loads it, on first use.

Each window is read where it lies: a table on the stack has the address of each tap of each pixel of a block of tiles.
After Dukhan, "The Indirect Convolution Algorithm" (2019), where such a table is kept for all pixels.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, register_jitable

from ops.convolution import tiled_args as at
from ops.native.emit.tile_shapes import AVX2, AVX512, PORTABLE
from ops.native.emit.vector_tile import multiply
from ops.native.memory import longs, share, word
from ops.tensor.spec import Array

_TAG_512, _TAG_2, _TAG_PORTABLE = AVX512.tag, AVX2.tag, PORTABLE.tag
_PLACES = at.TABLE
_FIRSTS = _PLACES + 4 * at.MOST_ROWS
_ROOM = _FIRSTS + at.MOST_TILES + 1
Span = tuple[int, int]


def _stack_type(_: Any) -> Any:
    # The address of _ROOM words of the stack.

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        kind = ir.ArrayType(ir.IntType(64), _ROOM)
        with builder.goto_entry_block():
            buffer = builder.alloca(kind)
        return builder.ptrtoint(buffer, ir.IntType(64))

    return types.int64(), generate


_stack: Any = intrinsic(_stack_type)


@register_jitable
def _ceil(number: int, step: int) -> int:
    return (number + step - 1) // step


@register_jitable
def _split(tiles: int, panels: int, part: int, parts: int) -> tuple[Span, Span]:
    """The tiles and the panels of a part: as even as can be, and rather few panels than few tiles."""
    best, across = tiles * panels + 1, 1
    for columns in range(1, parts + 1):
        if parts % columns == 0:
            most = _ceil(tiles, parts // columns) * _ceil(panels, columns)
            if most < best:
                best, across = most, columns
    return share(tiles, part // across, parts // across), share(panels, part % across, across)


@register_jitable
def _place(words: int, places: Array, pixels: Span, group: int) -> None:
    """Where the windows of these pixels begin: address, and place along the three dimensions; a row for each."""
    rows, first, count = at.MOST_ROWS, pixels[0], pixels[1] - pixels[0]
    od, oh, ow = word(words, at.OUTPUTS + 1), word(words, at.OUTPUTS + 2), word(words, at.OUTPUTS + 3)
    x, line, plane, image = first % ow, first // ow, first // (ow * oh), first // (ow * oh * od)
    y, z = line % oh, plane % od
    sd, sh, sw = word(words, at.STRIDES), word(words, at.STRIDES + 1), word(words, at.STRIDES + 2)
    pd, ph, pw = word(words, at.BEGINS), word(words, at.BEGINS + 1), word(words, at.BEGINS + 2)
    near, far = (word(words, at.HOPS + 2), word(words, at.HOPS + 3)), (word(words, at.HOPS), word(words, at.HOPS + 1))
    start = word(words, at.X) + group * word(words, at.GROUP_BYTES)
    for i in range(count):
        d, h, w = z * sd - pd, y * sh - ph, x * sw - pw
        places[i] = start + image * far[0] + d * far[1] + h * near[0] + w * near[1]
        places[rows + i], places[2 * rows + i], places[3 * rows + i] = d, h, w
        x += 1
        if x == ow:
            x, y = 0, y + 1
            if y == oh:
                y, z = 0, z + 1
                if z == od:
                    z, image = 0, image + 1


@register_jitable
def _point(words: int, table: Array, places: Array, count: int) -> None:
    """The addresses of all taps of so many pixels: (runs, TABLE_ROWS)."""
    rows, zeros, step, tap = at.MOST_ROWS, word(words, at.ZEROS), word(words, at.TABLE_ROWS), 0
    depth, height = np.uint64(word(words, at.SIZES)), np.uint64(word(words, at.SIZES + 1))
    width = np.uint64(word(words, at.SIZES + 2))
    for kd in range(word(words, at.KERNEL)):
        dd = kd * word(words, at.DILATIONS)
        for kh in range(word(words, at.KERNEL + 1)):
            dh = kh * word(words, at.DILATIONS + 1)
            for kw in range(word(words, at.KERNEL + 2)):
                dw = kw * word(words, at.DILATIONS + 2)
                hop = dd * word(words, at.HOPS + 1) + dh * word(words, at.HOPS + 2) + dw * word(words, at.HOPS + 3)
                for i in range(count):
                    inside = np.uint64(places[rows + i] + dd) < depth
                    inside &= np.uint64(places[2 * rows + i] + dh) < height
                    inside &= np.uint64(places[3 * rows + i] + dw) < width
                    table[tap + i] = places[i] + hop if inside else zeros
                tap += step


@register_jitable
def _pixels(words: int) -> int:
    """Outputs of one channel, of all images."""
    count: int = word(words, at.OUTPUTS) * word(words, at.OUTPUTS + 1)
    count *= word(words, at.OUTPUTS + 2) * word(words, at.OUTPUTS + 3)
    return count


@register_jitable
def _fill(words: int, buffer: int, tiles: Span, group: int) -> None:
    """The table of a block of tiles, and the first pixel of each: all tiles have as many pixels, or one less."""
    size, pixels = word(words, at.TABLE_ROWS) * _runs(words), _pixels(words)
    places, firsts = longs(buffer + 8 * _PLACES, 4 * at.MOST_ROWS), longs(buffer + 8 * _FIRSTS, at.MOST_TILES + 1)
    total = _ceil(pixels, word(words, at.TILE_ROWS))
    for i in range(tiles[1] - tiles[0]):
        first, last = share(pixels, tiles[0] + i, total)
        firsts[i], firsts[i + 1] = first, last
        _place(words, places, (first, last), group)
        _point(words, longs(buffer + 8 * size * i, size), places, last - first)


@register_jitable
def _runs(words: int) -> int:
    runs: int = word(words, at.KERNEL) * word(words, at.KERNEL + 1) * word(words, at.KERNEL + 2)
    return runs


@register_jitable
def _multiply_panel(words: int, buffer: int, tiles: int, panel: int, tag: Any) -> None:
    """One panel with all tiles of a block, chunk after chunk of its runs; what is not yet whole waits in y."""
    runs, depth, width = _runs(words), word(words, at.DEPTH), word(words, at.PANEL)
    step, size = word(words, at.TABLE_ROWS), word(words, at.CHUNK_RUNS)
    per_group = _ceil(word(words, at.CHANNELS), width)
    group, number = panel // per_group, panel % per_group
    channels = min(width, word(words, at.CHANNELS) - number * width)
    column = 4 * (group * word(words, at.CHANNELS) + number * width)
    weights = word(words, at.PANELS) + 4 * panel * runs * depth * width
    start_y = word(words, at.Y) + column
    pitch, added, added_pitch = word(words, at.Y_PITCH), word(words, at.ADDED), word(words, at.ADDED_PITCH)
    firsts = longs(buffer + 8 * _FIRSTS, at.MOST_TILES + 1)
    for run in range(0, runs, size):
        count = min(size, runs - run)
        finish = words + 8 * (at.FINISH if run + count == runs else at.IDLE)
        for tile in range(tiles):
            first, last = firsts[tile], firsts[tile + 1]
            y = start_y + first * pitch
            start, start_pitch = (y, pitch) if run else (word(words, at.BIAS) + column, 0)
            more = added + first * added_pitch + column if added and not run else 0
            rows = buffer + 8 * step * (runs * tile + run)
            place = weights + 4 * run * depth * width
            factors = rows, last - first, count, depth, place, start, start_pitch
            multiply(tag, (*factors, more, added_pitch, y, pitch, channels, finish))


@register_jitable
def _convolve(words: int, part: int, parts: int, tag: Any) -> None:
    buffer, most = _stack(), word(words, at.BLOCK_TILES)
    per_group = _ceil(word(words, at.CHANNELS), word(words, at.PANEL))
    tiles = _ceil(_pixels(words), word(words, at.TILE_ROWS))
    rows, panels = _split(tiles, word(words, at.GROUPS) * per_group, part, parts)
    panel = panels[0]
    while panel < panels[1]:
        group = panel // per_group
        end = min((group + 1) * per_group, panels[1])
        for first in range(rows[0], rows[1], most):
            block = first, min(first + most, rows[1])
            _fill(words, buffer, block, group)
            for number in range(panel, end):
                _multiply_panel(words, buffer, block[1] - first, number, tag)
        panel = end


def avx512(words: int, part: int, parts: int) -> None:
    """Convolves with the words of ops.convolution.tiled_args, by tiles AVX512."""
    _convolve(words, part, parts, _TAG_512)


def avx2(words: int, part: int, parts: int) -> None:
    """The same by tiles AVX2."""
    _convolve(words, part, parts, _TAG_2)


def portable(words: int, part: int, parts: int) -> None:
    """The same by tiles PORTABLE."""
    _convolve(words, part, parts, _TAG_PORTABLE)
