"""Depthwise convolution and pooling of channels-last pixels, compiled. Imports numba: a door loads it.

Nothing is padded or copied. Windows that stand in PRODUCTS or MAXIMA go by eight pixels (with AVX-512; else by four),
and columns beside the row are masked; other windows are clipped to the taps inside, and those inside go by four:

    a row of outputs      |   8   |   8   |   8   |  5  |      pixels of a tile, of windows of constant taps
                           masked  inside  inside  masked
    a row of outputs      |1|1|  4  |  4  |  4  |1|1|          of other windows
                           clipped    inside     clipped
"""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.instructions import has
from allocator.machine_code.memory import jitable
from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import record_at, share
from ops.windows import emit
from ops.windows.args import DEPTHWISE, LARGEST, SPREAD, WINDOWS
from ops.windows.clip_code import clip
from ops.windows.emit import Finish, Window

_BLOCK = 16
"""Channels of a vector."""
_CHUNK = 16
"""Blocks of channels that a row of outputs is computed for at a time: their weights stay in the first cache."""

PRODUCTS = (3, 1), (5, 1), (7, 1), (3, 2), (5, 2)
MAXIMA = (3, 1), (3, 2), (2, 2)
"""Taps along a row, and strides, of depthwise convolutions and of maxima that have emitters of their own."""
_WIDE = 8 if has("avx512f") else 4
"""Pixels of a tile of a form: their sums, the weights of a row and a vector of x fit into the registers."""
_ANY, _LEAST_WIDE = -1, 3
"""The form of other windows; the least outputs in a row that are worth a tile of a form."""


def _of_rows(kind: Any, rows: tuple[tuple[int, int], ...]) -> tuple[Any, ...]:
    """Returns the emitters of one pixel, of four and of each form, each for all lanes and then for some of them."""
    some = [kind(n, full) for n in (1, 4) for full in (True, False)]
    forms = [kind(_WIDE, full, row_of=emit.Row(*row)) for row in rows for full in (True, False)]
    return *some, *forms


_KINDS = (
    _of_rows(emit.products, PRODUCTS),
    _of_rows(emit.maxima, MAXIMA),
    _of_rows(emit.means, ()),
    (emit.products(1, full=False, spread=True),),
)
_MAXIMUM, _MEAN, _SPREAD = (sum(map(len, _KINDS[:i])) for i in (1, 2, 3))
_window = intrinsic_of_two(emit.one_of(*(emitter for kind in _KINDS for emitter in kind)))
"""_window(Window(...), Finish(...)): all in one, so that the words of a tile stay in registers."""


@jitable
def _number(rows: tuple[tuple[int, int], ...], taps: int, stride: int) -> int:
    for i in range(len(rows)):
        if rows[i][0] == taps and rows[i][1] == stride:
            return i
    return _ANY


@jitable
def _form(args: Any) -> int:
    """Returns the number of the windows in PRODUCTS or MAXIMA, or _ANY."""
    taps, stride = args.kernel[2], args.strides[2]
    if args.dilations[2] != 1 or args.outputs[2] < _LEAST_WIDE:
        return _ANY
    if args.kind == DEPTHWISE:
        return int(_number(PRODUCTS, taps, stride))
    return int(_number(MAXIMA, taps, stride)) if args.kind == LARGEST else _ANY


@jitable
def _emitter(kind: int, form: int, several: bool, some: bool) -> int:
    """Returns the number of the emitter of `_window` for a tile; `some`: not all lanes, pixels or columns are there."""
    if kind == SPREAD:
        return _SPREAD
    first = 0 if kind == DEPTHWISE else _MAXIMUM if kind == LARGEST else _MEAN
    return first + some + (2 * several if form == _ANY else 4 + 2 * form)


@jitable
def _inside(args: Any, ox: int) -> int:
    """Returns how many outputs from `ox` on along a row have windows that lie inside, one after the other."""
    outputs, stride, start = args.outputs[2], args.strides[2], ox * args.strides[2] - args.begins[2]
    reach = args.sizes[2] - 1 - start - (args.kernel[2] - 1) * args.dilations[2]
    return min(outputs - ox, reach // stride + 1) if start >= 0 and reach >= 0 else 0


@jitable
def _row(args: Any, row: int, blocks: tuple[int, int]) -> None:
    """Computes some blocks of channels of one row of outputs."""
    # All that does not depend on the tile is computed here: compiled code cannot move loads over a tile's stores.
    kind, channels, outputs, x_pitch = args.kind, args.channels, args.outputs[2], args.x_pitch
    columns, stride, begin = args.sizes[2], args.strides[2], args.begins[2]
    line_pitch = columns * x_pitch
    hop_z, hop_y = args.dilations[0] * args.sizes[1] * line_pitch, args.dilations[1] * line_pitch
    hop_x = args.dilations[2] * x_pitch
    weights_hop_x = 4 * channels
    weights_hop_y = args.kernel[2] * weights_hop_x
    weights_hop_z = args.kernel[1] * weights_hop_y
    x_hop, y_pitch, added_pitch = stride * x_pitch, args.y_pitch, args.added_pitch
    x, y, weights, bias, added, many = args.x, args.y, args.weights, args.bias, args.added, args.outputs_per_channel
    low, high, slope = args.low, args.high, args.slope
    oz, oy = row // args.outputs[1] % args.outputs[0], row % args.outputs[1]
    z, z0, z1, counted_z = clip(args, 0, oz)
    v, v0, v1, counted_y = clip(args, 1, oy)
    image = row // (args.outputs[0] * args.outputs[1])
    line = ((image * args.sizes[0] + z) * args.sizes[1] + v) * columns
    filters = (z0 * args.kernel[1] + v0) * args.kernel[2]
    form = _form(args)
    ox = 0
    while ox < outputs:
        inside, repeat, counted_x = _inside(args, ox), 1, 1
        if form == _ANY:
            u, u0, u1, counted_x = clip(args, 2, ox)
            pixels = 4 if inside >= 4 and kind != SPREAD else 1
            whole = True
        else:
            u, u0, u1 = ox * stride - begin, 0, 0
            pixels, whole = min(outputs - ox, _WIDE), inside >= _WIDE
            repeat = max(inside // _WIDE, 1)
        source, place = x + (line + u) * x_pitch, row * outputs + ox
        finish = Finish(low, high, slope, count=float(max(counted_z * counted_y * counted_x, 1)))
        block = blocks[0]
        while block < blocks[1]:
            shift, lanes = 4 * _BLOCK * block, min(channels - _BLOCK * block, _BLOCK)
            first_x = source if kind == SPREAD else source + shift
            addend = added + place * added_pitch + shift if added else 0
            some = lanes < _BLOCK or not whole
            together = max(min(blocks[1], channels // _BLOCK) - block, 1) if kind != SPREAD else 1
            number = _emitter(kind, form, pixels > 1, some)
            tile = Window(
                emitter=number,
                x=first_x,
                y=y + place * y_pitch + shift,
                lanes=lanes,
                taps_z=z1 - z0,
                taps_y=v1 - v0,
                taps_x=u1 - u0,
                hop_z=hop_z,
                hop_y=hop_y,
                hop_x=hop_x,
                x_hop=x_hop,
                y_hop=y_pitch,
                repeat=repeat,
                blocks=together,
                pixels=pixels,
                begin=-u,
                end=columns - u,
                weights=weights + (filters + u0) * weights_hop_x + shift,
                weights_hop_z=weights_hop_z,
                weights_hop_y=weights_hop_y,
                weights_hop_x=weights_hop_x,
                bias=bias + shift,
                added=addend,
                added_hop=added_pitch,
                first=_BLOCK * block,
                many=many,
            )
            _window(tile, finish)
            block += together
        ox += pixels * repeat


@entry()
def windows(address: int, part: int, parts: int) -> None:
    """Computes this part's rows of outputs and blocks of channels; the arguments are a WINDOWS record."""
    args = record_at(address, WINDOWS)
    blocks = (args.channels + _BLOCK - 1) // _BLOCK
    chunks = (blocks + _CHUNK - 1) // _CHUNK
    rows = args.images * args.outputs[0] * args.outputs[1]
    first, last = share(rows * chunks, part, parts)
    for job in range(first, last):
        _row(args, job % rows, share(blocks, job // rows, chunks))
