"""Depthwise convolution and pooling of channels-last pixels, compiled. Imports numba: loaded by ops.native.door.

Nothing is padded or copied: each window is clipped to the taps that lie inside. Where all taps along a row do, some
pixels share the loads of the weights; the pixels beside them go one by one:

    a row of outputs      |1|1|   8   |   8   | 4 |1|      pixels of a tile
                           clipped    inside       clipped
"""

from typing import Any

from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import jitable, record_at, share
from ops.windows import emit
from ops.windows.args import DEPTHWISE, LARGEST, SPREAD, WINDOWS
from ops.windows.clip_code import clip
from ops.windows.emit import Finish, Window

_BLOCK = 16
"""Channels of a vector."""
_CHUNK = 16
"""Blocks of channels that a row of outputs is computed for at a time: their weights stay in the first cache."""

ANY, THREE, FIVE, THREE_APART, FIVE_APART, SEVEN = range(6)
"""Windows along a row: of any taps, of three, five or seven side by side; windows side by side, or every second one."""
_window = intrinsic_of_two(
    emit.one_of(
        *(emit.products(n, full) for n in (1, 4) for full in (True, False)),
        emit.products(8, full=False),
        *(emit.products(n, full=True, row_of=emit.Row(taps, 1)) for taps in (3, 5) for n in (4, 8)),
        *(emit.products(4, full=True, row_of=emit.Row(taps, 2)) for taps in (3, 5)),
        emit.products(1, full=False, spread=True),
        *(emit.maxima(n, full) for n in (1, 4) for full in (True, False)),
        *(emit.means(n, full) for n in (1, 4) for full in (True, False)),
        *(emit.maxima(4, full=True, row_of=emit.Row(3, stride)) for stride in (1, 2)),
        *(emit.products(n, full, row_of=emit.Row(7, 1)) for n, full in ((4, True), (8, True), (8, False))),
    )
)
"""_window(Window(...), Finish(...)): all in one, so that the words of a tile stay in registers."""


@jitable
def _form(args: Any) -> int:
    """Returns the form of the windows along a row."""
    taps, stride = args.kernel[2], args.strides[2]
    if args.kind not in (DEPTHWISE, LARGEST) or args.dilations[2] != 1 or stride > 2:
        return ANY
    if taps == 3:
        return THREE if stride == 1 else THREE_APART
    if args.kind == DEPTHWISE and taps == 5:
        return FIVE if stride == 1 else FIVE_APART
    return SEVEN if args.kind == DEPTHWISE and taps == 7 and stride == 1 else ANY


@jitable
def _emitter(kind: int, form: int, pixels: int, lanes: int) -> int:
    """Returns the number of the emitter of `_window` for a tile."""
    some, several = lanes < _BLOCK, pixels > 1
    if kind == SPREAD:
        return 11
    if kind == DEPTHWISE:
        return int(_depthwise_emitter(form, pixels, some))
    if form != ANY and several and not some:
        return 20 + (form == THREE_APART)
    return (12 if kind == LARGEST else 16) + 2 * several + some


@jitable
def _depthwise_emitter(form: int, pixels: int, some: bool) -> int:
    """Returns the number of the emitter of `_window` for a tile of a convolution; `some`: not all lanes count."""
    several, eight = pixels > 1, pixels == 8
    if form == SEVEN and several and (eight or not some):
        return 22 + eight + some
    if some:
        return 4 if eight else 1 + 2 * several
    if form == ANY or not several:
        return 2 * several
    return 6 + form if form > FIVE else 3 + 2 * form + eight


@jitable
def _width(ox: int, inside: tuple[int, int], most: int) -> int:
    """Returns the pixels of the next tile."""
    if most == 1 or ox < inside[0] or ox + 4 > inside[1]:
        return 1
    return 8 if most == 8 and ox + 8 <= inside[1] else 4


@jitable
def _inside(args: Any) -> tuple[int, int]:
    """Returns the outputs [first, last) along a row whose windows lie inside."""
    outputs, stride, begin = args.outputs[2], args.strides[2], args.begins[2]
    first = min((begin + stride - 1) // stride, outputs)
    reach = args.sizes[2] - 1 + begin - (args.kernel[2] - 1) * args.dilations[2]
    last = min(reach // stride + 1, outputs) if reach >= 0 else 0
    return first, max(first, last)


@jitable
def _row(args: Any, row: int, blocks: tuple[int, int]) -> None:
    """Computes some blocks of channels of one row of outputs."""
    # All that does not depend on the tile is computed here: compiled code cannot move loads over a tile's stores.
    kind, channels, outputs, x_pitch = args.kind, args.channels, args.outputs[2], args.x_pitch
    line_pitch = args.sizes[2] * x_pitch
    hop_z, hop_y = args.dilations[0] * args.sizes[1] * line_pitch, args.dilations[1] * line_pitch
    hop_x = args.dilations[2] * x_pitch
    weights_hop_x = 4 * channels
    weights_hop_y = args.kernel[2] * weights_hop_x
    weights_hop_z = args.kernel[1] * weights_hop_y
    x_hop, y_pitch, added_pitch = args.strides[2] * x_pitch, args.y_pitch, args.added_pitch
    x, y, weights, bias, added, many = args.x, args.y, args.weights, args.bias, args.added, args.outputs_per_channel
    low, high, slope = args.low, args.high, args.slope
    oz, oy = row // args.outputs[1] % args.outputs[0], row % args.outputs[1]
    z, z0, z1, counted_z = clip(args, 0, oz)
    v, v0, v1, counted_y = clip(args, 1, oy)
    image = row // (args.outputs[0] * args.outputs[1])
    line = ((image * args.sizes[0] + z) * args.sizes[1] + v) * args.sizes[2]
    filters = (z0 * args.kernel[1] + v0) * args.kernel[2]
    inside, form = _inside(args), _form(args)
    most = 8 if kind == DEPTHWISE and form in (THREE, FIVE, SEVEN) else 1 if kind == SPREAD else 4
    ox = 0
    while ox < outputs:
        pixels = _width(ox, inside, most)
        u, u0, u1, counted_x = clip(args, 2, ox)
        source, place = x + (line + u) * x_pitch, row * outputs + ox
        finish = Finish(low, high, slope, count=float(max(counted_z * counted_y * counted_x, 1)))
        for block in range(blocks[0], blocks[1]):
            shift, lanes = 4 * _BLOCK * block, min(channels - _BLOCK * block, _BLOCK)
            first_x = source if kind == SPREAD else source + shift
            addend = added + place * added_pitch + shift if added else 0
            tile = Window(
                emitter=_emitter(kind, form, pixels, lanes),
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
        ox += pixels


def windows(address: int, part: int, parts: int) -> None:
    """Computes this part's rows of outputs and blocks of channels; the arguments are a WINDOWS record."""
    args = record_at(address, WINDOWS)
    blocks = (args.channels + _BLOCK - 1) // _BLOCK
    chunks = (blocks + _CHUNK - 1) // _CHUNK
    rows = args.images * args.outputs[0] * args.outputs[1]
    first, last = share(rows * chunks, part, parts)
    for job in range(first, last):
        _row(args, job % rows, share(blocks, job // rows, chunks))
