"""Channels-last convolution by tiles, compiled. Imports numba: a door loads it, on first use.

Windows are read in place, through the table of `indirect_code`. Work is split into tiles and panels:

                   panel 0    panel 1  ...        a panel: weights of as many outputs as a tile has columns
    tile 0         A          D                   a tile: some pixels of a line
    tile 1         B          E                   a block, here of three tiles, is multiplied by one panel (A, B, C),
    tile 2         C          F                   then by the next (D, E, F): panel and inputs stay in the cache
"""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable
from ops.convolution.args import TABLE, TILED_CONV
from ops.convolution.indirect_code import Span, ceil_div, output_pixels, split_work, taps_of, write_table
from ops.native.emit.tile_shapes import AVX2, AVX512, PORTABLE
from ops.native.emit.vector_tile import multiply
from ops.native.intrinsics import stack
from ops.native.memory import record_at, share
from ops.native.records import offset

_TAG_512, _TAG_2, _TAG_PORTABLE = AVX512.tag, AVX2.tag, PORTABLE.tag
_FINISH, _IDLE = offset(TILED_CONV, "activation"), offset(TILED_CONV, "idle")
_table = stack(8 * TABLE)


@jitable
def _tile_pixels(args: Any, tile: int) -> Span:
    """Returns the pixels of a tile; all tiles of a line have as many pixels, or one less."""
    parts, start = ceil_div(args.line, args.tile_rows), 0
    if tile >= parts:  # not in the first line: a division takes as long as a small product
        start, tile = tile // parts * args.line, tile % parts
    first, last = share(args.line, tile, parts)
    return start + first, start + last


@jitable
def _address(args: Any, pixel: int) -> int:
    """Returns the address of a pixel of y."""
    line, hops = args.line, args.y_hops
    if pixel < line:
        return int(args.y + pixel * hops[3])
    row, x = pixel // line, pixel % line
    plane, y = row // args.outputs[2], row % args.outputs[2]
    image, z = plane // args.outputs[1], plane % args.outputs[1]
    return int(args.y + image * hops[0] + z * hops[1] + y * hops[2] + x * hops[3])


@jitable
def _multiply_panel(address: int, table: int, tiles: tuple[int, int], panel: int, tag: Any) -> None:
    """Multiplies all tiles of a block by one panel, in chunks of runs; sums that are not complete wait in y."""
    args = record_at(address, TILED_CONV)
    runs, depth, width, step = taps_of(args), args.depth, args.panel, args.table_rows
    per_group = ceil_div(args.channels, width)
    group, number = panel // per_group, panel % per_group
    channels = min(width, args.channels - number * width)
    column = 4 * (group * args.channels + number * width)
    weights = args.panels + 4 * panel * runs * depth * width
    pitch, added, added_pitch = args.y_hops[3], args.added, args.added_pitch
    for run in range(0, runs, args.chunk_runs):
        count = min(args.chunk_runs, runs - run)
        finish = address + (_FINISH if run + count == runs else _IDLE)
        for tile in range(tiles[0], tiles[1]):
            first, last = _tile_pixels(args, tile)
            y = _address(args, first) + column
            start, start_pitch = (y, pitch) if run else (args.bias + column, 0)
            more = added + first * added_pitch + column if added and not run else 0
            rows = table + 8 * step * (runs * (tile - tiles[0]) + run)
            place = weights + 4 * run * depth * width
            factors = rows, last - first, count, depth, place, start, start_pitch
            multiply(tag, (*factors, more, added_pitch, y, pitch, channels, finish))


@jitable
def _convolve(address: int, part: int, parts: int, tag: Any) -> None:
    args, table = record_at(address, TILED_CONV), _table()
    per_group, size = ceil_div(args.channels, args.panel), args.table_rows * taps_of(args)
    total = output_pixels(args) // args.line * ceil_div(args.line, args.tile_rows)
    tiles, panels = split_work(total, args.groups * per_group, part, parts)
    panel = panels[0]
    while panel < panels[1]:
        group = panel // per_group
        end = min((group + 1) * per_group, panels[1])
        for first in range(tiles[0], tiles[1], args.block_tiles):
            block = first, min(first + args.block_tiles, tiles[1])
            for tile in range(block[0], block[1]):
                write_table(args, table + 8 * size * (tile - first), _tile_pixels(args, tile), group, args.table_rows)
            for number in range(panel, end):
                _multiply_panel(address, table, block, number, tag)
        panel = end


@entry(needs=AVX512.needs)
def avx512(address: int, part: int, parts: int) -> None:
    """Convolves by tiles AVX512; the arguments are a TILED_CONV record."""
    _convolve(address, part, parts, _TAG_512)


@entry(needs=AVX2.needs)
def avx2(address: int, part: int, parts: int) -> None:
    """Convolves by tiles AVX2; the arguments are a TILED_CONV record."""
    _convolve(address, part, parts, _TAG_2)


@entry()
def portable(address: int, part: int, parts: int) -> None:
    """Convolves by tiles PORTABLE; the arguments are a TILED_CONV record."""
    _convolve(address, part, parts, _TAG_PORTABLE)
