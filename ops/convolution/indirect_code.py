"""The table of an indirect convolution: the address of each tap of each pixel of a tile. Compiled.

After Dukhan, "The Indirect Convolution Algorithm" (2019), where such a table is kept for all pixels; here it is on the
stack, for some tiles. A product then reads each run of inputs where it is, and padding from a run of zeros:

    table of a tile          pixel 0   pixel 1   pixel 2   ...
    tap (0, 0)               zeros     &x[0,0]   &x[0,1]
    tap (0, 1)               &x[0,0]   &x[0,1]   &x[0,2]
    ...

`args` is a record with the fields `x`, `zeros` (addresses) and those of `ops.convolution.args.WINDOWS`. Imports numba:
only modules of compiled code import this one.
"""

from typing import Any

from allocator.machine_code.memory import jitable, longs
from ops.convolution.args import MOST_TILE_ROWS
from ops.convolution.indirect_emit import PLACES, emit_taps
from ops.native.intrinsics import intrinsic_of, stack
from ops.native.memory import share

Span = tuple[int, int]
"""A half-open range."""
_OWN_TILES, _SHARED_TILES = 20, 21
"""Costs of a product of a tile and a panel, where parts have tiles of their own, and where they share tiles.

`tools/bench_run.py --threads 2` times it: SqueezeNet is a tenth faster than with equal costs.
"""
_places, _write_taps = stack(8 * PLACES * MOST_TILE_ROWS), intrinsic_of(emit_taps)


@jitable
def ceil_div(number: int, step: int) -> int:
    """Returns how many steps cover a number."""
    return (number + step - 1) // step


@jitable
def split_work(tiles: int, panels: int, part: int, parts: int) -> tuple[Span, Span]:
    """Returns the tiles and the panels of a part.

    Parts have tiles of their own, unless sharing tiles makes them clearly more even: parts that share tiles write the
    same tables, read the same inputs, and write to neighbouring cache lines.
    """
    best, across = _OWN_TILES * ceil_div(tiles, parts) * panels, 1
    for columns in range(2, parts + 1):
        if parts % columns == 0:
            most = _SHARED_TILES * ceil_div(tiles, parts // columns) * ceil_div(panels, columns)
            if most < best:
                best, across = most, columns
    return share(tiles, part // across, parts // across), share(panels, part % across, across)


@jitable
def output_pixels(args: Any) -> int:
    """Returns the outputs of one channel, of all images."""
    outputs = args.outputs
    return int(outputs[0] * outputs[1] * outputs[2] * outputs[3])


@jitable
def tile_pixels(args: Any, tile: int, rows: int) -> Span:
    """Returns the pixels of a tile of at most `rows`; all tiles have as many pixels, or one less."""
    total = output_pixels(args)
    first, last = share(total, tile, ceil_div(total, rows))
    return first, last


@jitable
def taps_of(args: Any) -> int:
    """Returns the runs of a window."""
    kernel = args.kernel
    return int(kernel[0] * kernel[1] * kernel[2])


@jitable
def _locate(args: Any, places: Any, pixels: Span, group: int) -> None:
    """Writes where the windows of pixels begin: rows of addresses, and of coordinates along three dimensions."""
    rows, number, count = MOST_TILE_ROWS, 0, pixels[1] - pixels[0]
    od, oh, ow = args.outputs[1], args.outputs[2], args.outputs[3]
    x, line, plane, image = pixels[0] % ow, pixels[0] // ow, pixels[0] // (ow * oh), pixels[0] // (ow * oh * od)
    y, z = line % oh, plane % od
    hops, start, stride = args.hops, args.x + group * args.group_bytes, args.strides[2]
    while number < count:  # pixels of one line of the output
        d, h, w = (
            z * args.strides[0] - args.begins[0],
            y * args.strides[1] - args.begins[1],
            x * stride - args.begins[2],
        )
        place, step = start + image * hops[0] + d * hops[1] + h * hops[2] + w * hops[3], stride * hops[3]
        here = min(ow - x, count - number)
        for i in range(here):
            places[number + i], places[rows + number + i] = place + i * step, d
            places[2 * rows + number + i], places[3 * rows + number + i] = h, w + i * stride
        number, x, y = number + here, 0, y + 1
        if y == oh:
            y, z = 0, z + 1
            if z == od:
                z, image = 0, image + 1


@jitable
def write_table(args: Any, table: int, pixels: Span, group: int, rows: int) -> None:
    """Writes the addresses (taps, rows) of the pixels of one tile to an address; only those of these pixels."""
    places, count = _places(), pixels[1] - pixels[0]
    _locate(args, longs(places, PLACES * MOST_TILE_ROWS), pixels, group)
    hops, dilations, sizes, kernel = args.hops, args.dilations, args.sizes, args.kernel
    distances = hops[1], hops[2], hops[3], dilations[0], dilations[1], dilations[2]
    extents = sizes[0], sizes[1], sizes[2], kernel[0], kernel[1], kernel[2]
    _write_taps((table, 8 * rows, places, count, args.zeros, *distances, *extents))
