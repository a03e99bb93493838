"""Products of matrices by tiles, compiled. Imports numba: a door loads it, on first use.

The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), but rows of a
are read in place. A panel that is not packed yet is packed on the stack by each thread that needs it.

                        b      panel 0 | panel 1 | ...          a panel: `width` columns, `chunk` steps of the depth
                               --------+---------+----          at a time
    a   tile 0 (rows)      y   1       | 4
        tile 1                 2       | 5                      a block, here of three tiles: all of them are multiplied
        tile 2                 3       | 6                      by one panel before the next, so that block and panel
        -------                --------+---------+----          stay in the cache
        tile 3                 7 ...
"""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable, longs
from ops.native.emit.tile_shapes import AVX2, AVX512, CLIP, LEAK, PORTABLE
from ops.native.emit.vector_tile import multiply
from ops.native.intrinsics import intrinsic_of_two, stack
from ops.native.memory import floats, record_at, share
from ops.native.records import offset
from ops.products import args as at
from ops.products import emit as vectors
from ops.vector.math import gated, gelu, gelu_tanh

_TAG_512, _TAG_2, _TAG_PORTABLE = AVX512.tag, AVX2.tag, PORTABLE.tag
_SHAPE_512, _SHAPE_2, _SHAPE_PORTABLE = ((shape.rows, shape.channels) for shape in (AVX512, AVX2, PORTABLE))
_MOST_ROWS = AVX512.rows
Place = tuple[int, int, int]
"""A panel: its first column, its first step along the depth, and how many steps."""
_PANEL_BYTES = 4 * (at.MOST_CHUNK * AVX512.channels + 16 * AVX512.channels)


_gelu_erf, _gelu_tanh, _silu = (intrinsic_of_two(vectors.smooth(f)) for f in (gelu, gelu_tanh, lambda x: gated(x, x)))
_clip, _slope = intrinsic_of_two(vectors.clip), intrinsic_of_two(vectors.slope)
_pack_rows, _pack_columns = intrinsic_of_two(vectors.pack_rows), intrinsic_of_two(vectors.pack_columns)
_streams_8, _streams_1 = (intrinsic_of_two(vectors.streams(n)) for n in (vectors.STREAMS, 1))
_dots_4, _dots_1 = (intrinsic_of_two(vectors.dots(n)) for n in (vectors.DOTS, 1))
_row_table, _panel_buffer = stack(8 * _MOST_ROWS), stack(_PANEL_BYTES)
_FINISH, _IDLE = (offset(at.PRODUCTS, name) for name in ("activation", "idle"))
_OPERANDS = at.OPERANDS.itemsize


@jitable
def _smooth(kind: int, y: int, pitch: int, rows: int, count: int) -> None:
    """Applies a smooth activation to some rows."""
    for i in range(rows):
        here = (y + i * pitch, count)
        if kind == at.GELU_ERF:
            _gelu_erf(here, ())
        elif kind == at.GELU_TANH:
            _gelu_tanh(here, ())
        else:
            _silu(here, ())


@jitable
def _panel(args: Any, b: int, place: Place, width: int, buffer: int) -> int:
    """Returns the address of a panel, which is packed into the buffer unless it is packed already."""
    column, k, steps = place
    pitch = args.b_pitch
    if args.b_kind == at.PACKED:
        return int(b + 4 * (column * args.depth + k * width))
    shape = (steps, min(width, args.columns - column), buffer, 4 * width)
    factor = (args.factor,)
    if args.b_kind == at.BY_ROWS:
        _pack_rows((b + k * pitch + 4 * column, pitch, *shape), factor)
    else:
        _pack_columns((b + column * pitch + 4 * k, pitch, *shape), factor)
    return buffer


@jitable
def _tiles(  # noqa: PLR0917 - compiled code
    tag: Any, address: int, product: Any, panel: int, place: Place, tiles: Place, width: int
) -> None:
    """Multiplies some tiles of rows (first, last, of so many) by one panel, or a part of its depth."""
    column, k, steps = place
    args = record_at(address, at.PRODUCTS)
    rows, pitch, a_pitch, apart = args.rows, args.y_pitch, args.a_pitch, args.added_pitch
    channels = min(width, args.columns - column)
    kind = args.activation if k + steps >= args.depth else args.idle
    smooth = kind >= at.GELU_ERF
    end = address + (_IDLE if smooth or k + steps < args.depth else _FINISH)
    bias, table = args.bias + column * args.bias_hop, _row_table()
    places = longs(table, _MOST_ROWS)
    for tile in range(tiles[0], tiles[1]):
        row, height = rows * tile // tiles[2], rows * (tile + 1) // tiles[2] - rows * tile // tiles[2]
        for i in range(height):
            places[i] = product.a + (row + i) * a_pitch + 4 * k
        y, added = product.y + row * pitch + 4 * column, 0
        if product.added and k == 0:
            added = product.added + row * apart + 4 * column
        first, hop = (y, pitch) if k else (bias, 0)
        multiply(tag, (table, height, 1, steps, panel, first, hop, added, apart, y, pitch, channels, end))
        if smooth:
            _smooth(kind, y, pitch, height, channels)


@jitable
def _multiply(tag: Any, shape: tuple[int, int], address: int, part: int, parts: int) -> None:
    """Multiplies this part's units of work, which are tiles times panels, in the order of the picture above."""
    most, width = shape
    args = record_at(address, at.PRODUCTS)
    tiles, panels = (args.rows + most - 1) // most, (args.columns + width - 1) // width
    block, depth, chunk = args.block_tiles, args.depth, args.chunk
    unit, last = share(args.count * tiles * panels, part, parts)
    buffer = _panel_buffer()
    while unit < last:
        product = record_at(args.operands + _OPERANDS * (unit // (tiles * panels)), at.OPERANDS)
        inside = unit % (tiles * panels)
        start = inside // (block * panels) * block
        here = min(block, tiles - start)
        inside -= start * panels
        column, tile = inside // here * width, start + inside % here
        end = min(start + here, tile + last - unit)
        k = 0
        while k == 0 or k < depth:
            place = (column, k, min(chunk, depth - k))
            panel = _panel(args, product.b, place, width, buffer)
            _tiles(tag, address, product, panel, place, (tile, end, tiles), width)
            k += chunk
        unit += end - tile


@entry(needs=AVX512.needs)
def multiply_avx512(address: int, part: int, parts: int) -> None:
    """Multiplies by tiles of 14 rows and 32 columns; the arguments are a PRODUCTS record."""
    _multiply(_TAG_512, _SHAPE_512, address, part, parts)


@entry(needs=AVX2.needs)
def multiply_avx2(address: int, part: int, parts: int) -> None:
    """Multiplies by tiles of 6 rows and 16 columns; the arguments are a PRODUCTS record."""
    _multiply(_TAG_2, _SHAPE_2, address, part, parts)


@entry()
def multiply_portable(address: int, part: int, parts: int) -> None:
    """Multiplies by tiles of 6 rows and 8 columns; the arguments are a PRODUCTS record."""
    _multiply(_TAG_PORTABLE, _SHAPE_PORTABLE, address, part, parts)


@jitable
def _begin(args: Any, product: Any, row: int, columns: tuple[int, int]) -> int:
    """Writes bias and addend to some columns of a row of y; returns their address."""
    first, count = columns[0], columns[1] - columns[0]
    y, hop = product.y + row * args.y_pitch + 4 * first, args.bias_hop
    sums, bias = floats(y, count), floats(args.bias + first * hop, count)
    if product.added:
        added = floats(product.added + row * args.added_pitch + 4 * first, count)
        for i in range(count):
            sums[i] = added[i] + bias[i * hop // 4]
    else:
        for i in range(count):
            sums[i] = bias[i * hop // 4]
    return int(y)


@jitable
def _end(args: Any, y: int, count: int) -> None:
    """Applies the activation to some columns of a row."""
    if args.activation == CLIP:
        _clip((y, count), (args.low, args.high))
    elif args.activation == LEAK:
        _slope((y, count), (args.slope,))
    elif args.activation >= at.GELU_ERF:
        _smooth(args.activation, y, 0, 1, count)


@jitable
def _by_rows(args: Any, product: Any, columns: tuple[int, int]) -> None:
    """Multiplies a few rows by some columns of b, which is read once, several of its rows at a time."""
    depth, pitch, factor = args.depth, args.b_pitch, (args.factor,)
    rows, count = args.rows, columns[1] - columns[0]
    a, b, y = product.a, product.b + 4 * columns[0], product.y + 4 * columns[0]
    a_pitch, y_pitch = args.a_pitch, args.y_pitch
    for row in range(rows):
        _begin(args, product, row, columns)
    whole = depth - depth % vectors.STREAMS
    for k in range(0, whole, vectors.STREAMS):
        for row in range(rows):
            _streams_8((a + row * a_pitch + 4 * k, b + k * pitch, pitch, y + row * y_pitch, count), factor)
    for k in range(whole, depth):
        for row in range(rows):
            _streams_1((a + row * a_pitch + 4 * k, b + k * pitch, pitch, y + row * y_pitch, count), factor)
    for row in range(rows):
        _end(args, y + row * y_pitch, count)


@jitable
def _by_columns(args: Any, product: Any, columns: tuple[int, int]) -> None:
    """Multiplies a few rows by some columns of b, whose elements are neighbours."""
    depth, pitch, factor = args.depth, args.b_pitch, (args.factor,)
    first, last = columns
    for row in range(args.rows):
        a, b = product.a + row * args.a_pitch, product.b
        y = _begin(args, product, row, columns)
        whole = last - (last - first) % vectors.DOTS
        for n in range(first, whole, vectors.DOTS):
            _dots_4((a, b + n * pitch, pitch, depth, y + 4 * (n - first)), factor)
        for n in range(whole, last):
            _dots_1((a, b + n * pitch, pitch, depth, y + 4 * (n - first)), factor)
        _end(args, y, last - first)


@entry()
def multiply_few(address: int, part: int, parts: int) -> None:
    """Multiplies very few rows; b is read in place. The arguments are a PRODUCTS record."""
    args = record_at(address, at.PRODUCTS)
    columns, step = args.columns, args.columns_at_once
    first, last = share((columns + 15) // 16, part, parts)
    for i in range(args.count):
        product, end = record_at(args.operands + _OPERANDS * i, at.OPERANDS), min(16 * last, columns)
        for start in range(16 * first, end, step):
            span = (start, min(start + step, end))
            if args.b_kind == at.BY_ROWS:
                _by_rows(args, product, span)
            else:
                _by_columns(args, product, span)
