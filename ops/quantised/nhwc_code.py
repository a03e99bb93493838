"""Channels-last convolution of quantised values by tiles, compiled for AVX-512 with VNNI.

Windows are read in place, through the table of `ops.convolution.indirect_code`; blocks of tiles are multiplied by one
panel before the next, as in `ops.convolution.tiled_code`. The int32 sums of a tile are written to the stack, and read
from there by the code that scales and rounds them. Imports numba: a door loads it, on first use.
"""

from typing import Any

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import jitable
from ops.convolution.args import TABLE
from ops.convolution.indirect_code import (
    Span,
    ceil_div,
    output_pixels,
    split_work,
    taps_of,
    tile_pixels,
    write_table,
)
from ops.native.emit.builder import LANES
from ops.native.emit.byte_tile import (
    ROWS,
    WIDTH,
    ResultArgs,
    Scales,
    TileArgs,
    finish_added,
    finish_codes,
    finish_floats,
    finish_sums,
    products,
)
from ops.native.intrinsics import stack
from ops.native.memory import octets, record_at, share
from ops.quantised.args import CONV_ARGS, COPY_LINES, COPY_PIXELS

_PANEL = LANES * WIDTH
_table, _sums = stack(8 * TABLE), stack(4 * ROWS * _PANEL)


@jitable
def scales_of(args: Any) -> Any:
    """Returns the numbers that turn sums into results."""
    own, added = (args.own_zero, args.own_factor), (args.added_zero, args.added_factor)
    return Scales(args.zero, args.low, args.high, own[0], own[1], added[0], added[1])


@jitable
def write_results(args: Any, results: Any, scales: Any) -> None:
    """Writes the results of a tile of sums: as they are, as float32, or as bytes, maybe with others added."""
    if args.raw:
        finish_sums(results, scales)
    elif args.itemsize == 4:
        finish_floats(results, scales)
    elif args.added != 0:
        finish_added(results, scales)
    else:
        finish_codes(results, scales)


@jitable
def _write_tile(args: Any, sums: int, pixels: Span, panel: int) -> None:
    """Writes the results of a tile."""
    per_group = ceil_div(args.channels, _PANEL)
    group, number = panel // per_group, panel % per_group
    channels = min(_PANEL, args.channels - number * _PANEL)
    column = group * args.channels + number * _PANEL
    y = args.y + pixels[0] * args.y_pitch + column * args.itemsize
    added = args.added + pixels[0] * args.added_pitch + column
    factors, height = args.factors + 4 * _PANEL * panel, pixels[1] - pixels[0]
    results = ResultArgs(sums, height, factors, y, args.y_pitch, channels, added, args.added_pitch, args.flip)
    write_results(args, results, scales_of(args))


@jitable
def _multiply_panel(args: Any, table: int, sums: int, tiles: Span, panel: int) -> None:
    """Multiplies all tiles of a block by one panel."""
    runs, depth = taps_of(args), args.depth
    channels = args.channels - panel % ceil_div(args.channels, _PANEL) * _PANEL
    weights = args.panels + panel * runs * depth * 4 * _PANEL
    start, narrow = args.starts + 4 * _PANEL * panel, 1 if channels <= LANES else 0
    for tile in range(tiles[0], tiles[1]):
        pixels = tile_pixels(args, tile, ROWS)
        rows = table + 8 * ROWS * runs * (tile - tiles[0])
        products(TileArgs(pixels[1] - pixels[0], narrow, rows, runs, depth, weights, start, sums))
        _write_tile(args, sums, pixels, panel)


@jitable
def write_tables(args: Any, table: int, tiles: Span, group: int) -> None:
    """Writes the tables of a block of tiles."""
    size = 8 * ROWS * taps_of(args)
    for tile in range(tiles[0], tiles[1]):
        write_table(args, table + size * (tile - tiles[0]), tile_pixels(args, tile, ROWS), group, ROWS)


@entry(fastmath=EXACT, needs=("avx512vnni",))
def convolve(address: int, part: int, parts: int) -> None:
    """Convolves; the arguments are a CONV_ARGS record."""
    args, table, sums = record_at(address, CONV_ARGS), _table(), _sums()
    per_group = ceil_div(args.channels, _PANEL)
    tiles, panels = split_work(ceil_div(output_pixels(args), ROWS), args.groups * per_group, part, parts)
    panel = panels[0]
    while panel < panels[1]:
        group = panel // per_group
        end = min((group + 1) * per_group, panels[1])
        for first in range(tiles[0], tiles[1], args.block_tiles):
            block = first, min(first + args.block_tiles, tiles[1])
            write_tables(args, table, block, group)
            for number in range(panel, end):
                _multiply_panel(args, table, sums, block, number)
        panel = end


@entry(fastmath=EXACT)
def copy_pixels(address: int, part: int, parts: int) -> None:
    """Copies pixels, each group of channels padded to a multiple of four; int8 becomes uint8. See COPY_PIXELS."""
    args = record_at(address, COPY_PIXELS)
    channels, padded, flip = args.channels, args.padded_channels, args.flip
    first, last = share(args.pixels, part, parts)
    for pixel in range(first, last):
        for group in range(args.groups):
            source = octets(args.x + pixel * args.pitch + group * channels, channels)
            target = octets(args.y + (pixel * args.groups + group) * padded, padded)
            for c in range(channels):
                target[c] = source[c] ^ flip
            for c in range(channels, padded):
                target[c] = 0


@entry(fastmath=EXACT)
def copy_lines(address: int, part: int, parts: int) -> None:
    """Copies lines of pixels with padding in front of and behind them; int8 becomes uint8. See COPY_LINES."""
    args = record_at(address, COPY_LINES)
    width, channels, begin, flip, pitch = args.width, args.channels, args.begin, args.flip, args.pitch
    length = args.padded_width * channels
    first, last = share(args.lines, part, parts)
    for number in range(first, last):
        source, target = (
            octets(args.x + number * width * pitch, width * pitch),
            octets(args.y + number * length, length),
        )
        target[: begin * channels] = args.pad
        target[(begin + width) * channels :] = args.pad
        if pitch == channels:
            for i in range(width * channels):
                target[begin * channels + i] = source[i] ^ flip
        else:
            for pixel in range(width):
                for c in range(channels):
                    target[(begin + pixel) * channels + c] = source[pixel * pitch + c] ^ flip
