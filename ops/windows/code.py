"""Depthwise convolution and pooling of channels-last pixels, compiled. Imports numba: loaded by ops.native.door.

Nothing is padded or copied: each window is clipped to the taps that lie inside. Where all taps along a row do, some
pixels share the loads of the weights; the pixels beside them go one by one.
"""

from numba.extending import register_jitable

from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import real, share, word
from ops.windows import emit as vectors
from ops.windows.kinds import AVERAGE_PADDED, DEPTHWISE, LARGEST, SPREAD

Clip = tuple[int, int, int, int]
_CHUNK = 16
"""Blocks of 16 channels that a row of outputs is computed for at a time: their weights stay in the first cache."""


ANY, THREE, FIVE, THREE_APART, FIVE_APART = range(5)
"""Windows along a row: of any taps, of three or five side by side; windows side by side, or every second one."""
_window = intrinsic_of_two(
    vectors.one_of(
        *(vectors.products(n, full) for n in (1, 4) for full in (True, False)),
        vectors.products(8, full=False),
        *(vectors.products(n, full=True, row_of=vectors.Row(taps, 1)) for taps in (3, 5) for n in (4, 8)),
        *(vectors.products(4, full=True, row_of=vectors.Row(taps, 2)) for taps in (3, 5)),
        vectors.products(1, full=False, spread=True),
        *(vectors.maxima(n, full) for n in (1, 4) for full in (True, False)),
        *(vectors.means(n, full) for n in (1, 4) for full in (True, False)),
        *(vectors.maxima(4, full=True, row_of=vectors.Row(3, stride)) for stride in (1, 2)),
    )
)
"""All in one, so that the words of a tile stay in registers."""


@register_jitable
def _form(words: int) -> int:
    """The form of the windows along a row."""
    taps, stride = word(words, 13), word(words, 16)
    if word(words, 0) not in (DEPTHWISE, LARGEST) or word(words, 19) != 1 or stride > 2:
        return ANY
    if taps == 3:
        return THREE if stride == 1 else THREE_APART
    if taps == 5 and word(words, 0) == DEPTHWISE:
        return FIVE if stride == 1 else FIVE_APART
    return ANY


@register_jitable
def _choice(kind: int, form: int, pixels: int, lanes: int) -> int:
    """The number of what `_window` does."""
    some, several = lanes < 16, pixels > 1
    if kind == SPREAD:
        return 11
    if kind != DEPTHWISE:
        any_form = (12 if kind == LARGEST else 16) + 2 * several + some
        return 20 + (form == THREE_APART) if form != ANY and several and not some else any_form
    if some:
        return 4 if pixels == 8 else 1 + 2 * several
    if not several:
        return 0
    if form == ANY:
        return 2
    return 6 + form if form > FIVE else 3 + 2 * form + (pixels == 8)


@register_jitable
def _width(ox: int, inside: tuple[int, int], most: int) -> int:
    """Pixels of the next tile."""
    if most == 1 or ox < inside[0] or ox + 4 > inside[1]:
        return 1
    return 8 if most == 8 and ox + 8 <= inside[1] else 4


@register_jitable
def _inside(words: int) -> tuple[int, int]:
    """The outputs [first, last) along a row whose windows lie inside."""
    size, outputs, kernel, stride = word(words, 7), word(words, 10), word(words, 13), word(words, 16)
    begin = word(words, 22)
    first = min((begin + stride - 1) // stride, outputs)
    reach = size - 1 + begin - (kernel - 1) * word(words, 19)
    last = min(reach // stride + 1, outputs) if reach >= 0 else 0
    return first, max(first, last)


@register_jitable
def _clip(words: int, axis: int, output: int) -> Clip:
    """What a window reads along an axis: its first element inside, the taps [first, last) there, those that count."""
    size, kernel, dilation = word(words, 5 + axis), word(words, 11 + axis), word(words, 17 + axis)
    start = output * word(words, 14 + axis) - word(words, 20 + axis)
    first = min(max(-(start // dilation), 0), kernel)
    last = max(first, min(kernel, (size - 1 - start) // dilation + 1))
    counted = last - first
    if word(words, 0) == AVERAGE_PADDED:
        counted = min(kernel, max((size + word(words, 23 + axis) - 1 - start) // dilation + 1, 0))
    return start + first * dilation, first, last, counted


@register_jitable
def _row(words: int, row: int, blocks: tuple[int, int]) -> None:
    """Some blocks of channels of one row of outputs."""
    kind, channels, yp, ap = word(words, 0), word(words, 4), word(words, 27), word(words, 31)
    height, width, outputs, wp, xp = word(words, 6), word(words, 7), word(words, 10), 4 * channels, word(words, 26)
    oz, oy = row // word(words, 9) % word(words, 8), row % word(words, 9)
    z, z0, z1, deep = _clip(words, 0, oz)
    v, v0, v1, high = _clip(words, 1, oy)
    line = ((row // (word(words, 8) * word(words, 9)) * word(words, 5) + z) * height + v) * width
    hops = word(words, 17) * height * width * xp, word(words, 18) * width * xp, word(words, 19) * xp
    filters = (z0 * word(words, 12) + v0) * word(words, 13)
    w_hops = word(words, 12) * word(words, 13) * wp, word(words, 13) * wp, wp
    inside = _inside(words)
    form = _form(words)
    most = 8 if kind == DEPTHWISE and form in (THREE, FIVE) else 1 if kind == SPREAD else 4
    x_hop, bias, added, many = word(words, 16) * xp, word(words, 29), word(words, 30), word(words, 35)
    limits = real(words, 32), real(words, 33), real(words, 34)
    ox = 0
    while ox < outputs:
        pixels = _width(ox, inside, most)
        u, u0, u1, wide = _clip(words, 2, ox)
        source, place = word(words, 1) + (line + u) * xp, row * outputs + ox
        target, weights, other = word(words, 2) + place * yp, word(words, 28) + (filters + u0) * wp, added + place * ap
        numbers = limits + (float(max(deep * high * wide, 1)),)  # noqa: RUF005 - numba has no stars within tuples
        for b in range(blocks[0], blocks[1]):
            shift, lanes = 64 * b, min(channels - 16 * b, 16)
            tile = (source if kind == SPREAD else source + shift, target + shift, lanes, z1 - z0, v1 - v0, u1 - u0)
            more = bias + shift, other + shift if added else 0, ap, 16 * b, many
            choice = (_choice(kind, form, pixels, lanes),)
            _window(choice + tile + hops + (x_hop, yp, weights + shift) + w_hops + more, numbers)
        ox += pixels


def windows(words: int, part: int, parts: int) -> None:
    """The words are those of `ops.windows.args`. Rows of outputs are shared out, and blocks of channels."""
    blocks = (word(words, 4) + 15) // 16
    chunks = (blocks + _CHUNK - 1) // _CHUNK
    rows = word(words, 3) * word(words, 8) * word(words, 9)
    first, last = share(rows * chunks, part, parts)
    for job in range(first, last):
        _row(words, job % rows, share(blocks, job // rows, chunks))
