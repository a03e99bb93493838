"""Products of matrices by tiles, compiled. Imports numba: ops.native.door loads it, on first use.

The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), but for rows,
which are read where they lie. A panel that is not packed yet is packed on the stack by each thread that needs it.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic, register_jitable

from ops.native.emit.tile_shapes import AVX2, AVX512, CLIP, LEAK, PORTABLE
from ops.native.emit.vector_tile import multiply
from ops.native.memory import floats, longs, real, share, word
from ops.products import args as at
from ops.products import emit as vectors

_TAG_512, _TAG_2, _TAG_PORTABLE = AVX512.tag, AVX2.tag, PORTABLE.tag
_SHAPE_512, _SHAPE_2, _SHAPE_PORTABLE = ((shape.rows, shape.channels) for shape in (AVX512, AVX2, PORTABLE))
_MOST_ROWS = AVX512.rows
Place = tuple[int, int, int]
"""Of a panel: its first column, its first step along the depth, and its steps."""
_PANEL_BYTES = 4 * (at.MOST_CHUNK * AVX512.channels + 16 * AVX512.channels)


def _intrinsic(emit: Callable[..., None]) -> Any:
    """A function of a tuple of words and one of floats that becomes the LLVM code of `emit`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words, numbers = (
            [builder.extract_value(v, i) for i in range(len(t))] for t, v in zip(signature.args, values, strict=True)
        )
        emit(builder, words, numbers)
        return context.get_dummy_value()

    def typed(_: Any, words: Any, numbers: Any) -> Any:
        return numba.void(words, numbers), generate

    return intrinsic(typed)


def _stack(nbytes: int) -> Any:
    """A function that gives the address of so many bytes on the stack, a multiple of 64; of one place each."""

    def generate(_: Any, builder: Any, __: Any, ___: Any) -> Any:
        with builder.goto_entry_block():
            buffer = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
            buffer.align = 64
        return builder.ptrtoint(buffer, ir.IntType(64))

    def typed(_: Any) -> Any:
        return numba.int64(), generate

    return intrinsic(typed)


_gelu_erf, _gelu_tanh, _silu = (
    _intrinsic(vectors.smooth(f)) for f in (vectors.gelu_erf, vectors.gelu_tanh, vectors.silu)
)
_clip, _slope = _intrinsic(vectors.clip), _intrinsic(vectors.slope)
_pack_rows, _pack_columns = _intrinsic(vectors.pack_rows), _intrinsic(vectors.pack_columns)
_streams_8, _streams_1 = (_intrinsic(vectors.streams(n)) for n in (vectors.STREAMS, 1))
_dots_4, _dots_1 = (_intrinsic(vectors.dots(n)) for n in (vectors.DOTS, 1))
_row_table, _panel_buffer = _stack(8 * _MOST_ROWS), _stack(_PANEL_BYTES)


@register_jitable
def _smooth(kind: int, y: int, pitch: int, rows: int, count: int) -> None:
    """A smooth activation of some rows."""
    for i in range(rows):
        here = (y + i * pitch, count)
        if kind == at.GELU_ERF:
            _gelu_erf(here, ())
        elif kind == at.GELU_TANH:
            _gelu_tanh(here, ())
        else:
            _silu(here, ())


@register_jitable
def _panel(words: int, b: int, place: Place, width: int, buffer: int) -> int:
    """The address of a panel, which is packed into the room unless it is packed already."""
    column, k, steps = place
    kind, pitch = word(words, at.B_KIND), word(words, at.B_PITCH)
    if kind == at.PACKED:
        return int(b + 4 * (column * word(words, at.DEPTH) + k * width))
    shape = (steps, min(width, word(words, at.COLUMNS) - column), buffer, 4 * width)
    factor = (real(words, at.FACTOR),)
    if kind == at.BY_ROWS:
        _pack_rows((b + k * pitch + 4 * column, pitch, *shape), factor)
    else:
        _pack_columns((b + column * pitch + 4 * k, pitch, *shape), factor)
    return buffer


@register_jitable
def _tiles(  # noqa: PLR0917 - compiled code
    tag: Any, words: int, product: int, panel: int, place: Place, tiles: Place, width: int
) -> None:
    """Some tiles of rows (first, last, of so many) times one panel, or a part of its depth."""
    column, k, steps = place
    rows, pitch, a_pitch = word(words, at.ROWS), word(words, at.Y_PITCH), word(words, at.A_PITCH)
    apart, channels = word(words, at.ADDED_PITCH), min(width, word(words, at.COLUMNS) - column)
    finish = words + 8 * (at.FINISH if k + steps >= word(words, at.DEPTH) else at.PLAIN)
    kind = word(finish, 0)
    smooth = kind >= at.GELU_ERF
    end = words + 8 * at.PLAIN if smooth else finish
    bias, table = word(words, at.BIAS) + column * word(words, at.BIAS_HOP), _row_table()
    places = longs(table, _MOST_ROWS)
    for tile in range(tiles[0], tiles[1]):
        row, height = rows * tile // tiles[2], rows * (tile + 1) // tiles[2] - rows * tile // tiles[2]
        for i in range(height):
            places[i] = word(product, 0) + (row + i) * a_pitch + 4 * k
        y, added = word(product, 2) + row * pitch + 4 * column, 0
        if word(product, 3) and k == 0:
            added = word(product, 3) + row * apart + 4 * column
        first, hop = (y, pitch) if k else (bias, 0)
        multiply(tag, (table, height, 1, steps, panel, first, hop, added, apart, y, pitch, channels, end))
        if smooth:
            _smooth(kind, y, pitch, height, channels)


@register_jitable
def _multiply(tag: Any, shape: tuple[int, int], words: int, part: int, parts: int) -> None:
    # The units of work are tiles times panels: all tiles of a block meet one panel before the next.
    most, width = shape
    tiles, panels = (word(words, at.ROWS) + most - 1) // most, (word(words, at.COLUMNS) + width - 1) // width
    block, depth, chunk = word(words, at.BLOCK_TILES), word(words, at.DEPTH), word(words, at.CHUNK)
    unit, last = share(word(words, at.COUNT) * tiles * panels, part, parts)
    buffer = _panel_buffer()
    while unit < last:
        product = word(words, at.TABLE) + 32 * (unit // (tiles * panels))
        inside = unit % (tiles * panels)
        start = inside // (block * panels) * block
        here = min(block, tiles - start)
        inside -= start * panels
        column, tile = inside // here * width, start + inside % here
        end = min(start + here, tile + last - unit)
        k = 0
        while k == 0 or k < depth:
            place = (column, k, min(chunk, depth - k))
            panel = _panel(words, word(product, 1), place, width, buffer)
            _tiles(tag, words, product, panel, place, (tile, end, tiles), width)
            k += chunk
        unit += end - tile


def multiply_avx512(words: int, part: int, parts: int) -> None:
    """Tiles of 14 rows and 32 columns."""
    _multiply(_TAG_512, _SHAPE_512, words, part, parts)


def multiply_avx2(words: int, part: int, parts: int) -> None:
    """Tiles of 6 rows and 16 columns."""
    _multiply(_TAG_2, _SHAPE_2, words, part, parts)


def multiply_portable(words: int, part: int, parts: int) -> None:
    """Tiles of 6 rows and 8 columns."""
    _multiply(_TAG_PORTABLE, _SHAPE_PORTABLE, words, part, parts)


@register_jitable
def _begin(words: int, product: int, row: int, columns: tuple[int, int]) -> int:
    """Writes bias and what is added to some columns of a row of y; their address."""
    first, count = columns[0], columns[1] - columns[0]
    y = word(product, 2) + row * word(words, at.Y_PITCH) + 4 * first
    hop = word(words, at.BIAS_HOP)
    sums, bias = floats(y, count), floats(word(words, at.BIAS) + first * hop, count)
    if word(product, 3):
        added = floats(word(product, 3) + row * word(words, at.ADDED_PITCH) + 4 * first, count)
        for i in range(count):
            sums[i] = added[i] + bias[i * hop // 4]
    else:
        for i in range(count):
            sums[i] = bias[i * hop // 4]
    return int(y)


@register_jitable
def _end(words: int, y: int, count: int) -> None:
    """The activation of some columns of a row."""
    kind = word(words, at.FINISH)
    if kind == CLIP:
        _clip((y, count), (real(words, at.FINISH + 1), real(words, at.FINISH + 2)))
    elif kind == LEAK:
        _slope((y, count), (real(words, at.FINISH + 3),))
    elif kind >= at.GELU_ERF:
        _smooth(kind, y, 0, 1, count)


@register_jitable
def _by_rows(words: int, product: int, columns: tuple[int, int]) -> None:
    """A few rows times some columns of b, which is read once, several of its rows at a time."""
    depth, pitch, factor = word(words, at.DEPTH), word(words, at.B_PITCH), (real(words, at.FACTOR),)
    rows, count = word(words, at.ROWS), columns[1] - columns[0]
    a, b = word(product, 0), word(product, 1) + 4 * columns[0]
    a_pitch, y_pitch = word(words, at.A_PITCH), word(words, at.Y_PITCH)
    y = word(product, 2) + 4 * columns[0]
    for row in range(rows):
        _begin(words, product, row, columns)
    whole = depth - depth % vectors.STREAMS
    for k in range(0, whole, vectors.STREAMS):
        for row in range(rows):
            _streams_8((a + row * a_pitch + 4 * k, b + k * pitch, pitch, y + row * y_pitch, count), factor)
    for k in range(whole, depth):
        for row in range(rows):
            _streams_1((a + row * a_pitch + 4 * k, b + k * pitch, pitch, y + row * y_pitch, count), factor)
    for row in range(rows):
        _end(words, y + row * y_pitch, count)


@register_jitable
def _by_columns(words: int, product: int, columns: tuple[int, int]) -> None:
    """A few rows times some columns of b, of which the elements are neighbours."""
    depth, pitch, factor = word(words, at.DEPTH), word(words, at.B_PITCH), (real(words, at.FACTOR),)
    first, last = columns
    for row in range(word(words, at.ROWS)):
        a, b = word(product, 0) + row * word(words, at.A_PITCH), word(product, 1)
        y = _begin(words, product, row, columns)
        whole = last - (last - first) % vectors.DOTS
        for n in range(first, whole, vectors.DOTS):
            _dots_4((a, b + n * pitch, pitch, depth, y + 4 * (n - first)), factor)
        for n in range(whole, last):
            _dots_1((a, b + n * pitch, pitch, depth, y + 4 * (n - first)), factor)
        _end(words, y, last - first)


def multiply_few(words: int, part: int, parts: int) -> None:
    """Very few rows: weights are read where they lie."""
    columns, step = word(words, at.COLUMNS), word(words, at.COLUMNS_AT_ONCE)
    first, last = share((columns + 15) // 16, part, parts)
    for i in range(word(words, at.COUNT)):
        product, end = word(words, at.TABLE) + 32 * i, min(16 * last, columns)
        for start in range(16 * first, end, step):
            span = (start, min(start + step, end))
            if word(words, at.B_KIND) == at.BY_ROWS:
                _by_rows(words, product, span)
            else:
                _by_columns(words, product, span)
