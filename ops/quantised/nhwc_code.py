"""Channels-last convolution of codes by tiles, compiled for AVX-512 with VNNI. Imports numba: loaded by a door.

The sums of a tile go through a small room on the stack.
"""

from numba.extending import register_jitable

from ops.native.emit.builder import LANES
from ops.native.emit.byte_tile import (
    ROWS,
    WIDTH,
    finish_added,
    finish_codes,
    finish_floats,
    finish_sums,
    products,
)
from ops.native.memory import octets, real, share, word
from ops.quantised import nhwc_args as at
from ops.quantised.nhwc_indirect_code import Span, ceil, fill, outputs, pixels_of, runs_of, split, stack

_PANEL = LANES * WIDTH
_table, _places, _sums = stack(at.TABLE), stack(64), stack(ROWS * _PANEL // 2)


@register_jitable
def _finish(words: int, sums: int, pixels: Span, panel: int) -> None:
    """Writes the results of a tile."""
    per_group = ceil(word(words, at.CHANNELS), _PANEL)
    group, number = panel // per_group, panel % per_group
    channels = min(_PANEL, word(words, at.CHANNELS) - number * _PANEL)
    column = group * word(words, at.CHANNELS) + number * _PANEL
    numbers = (
        real(words, at.ZERO), real(words, at.LOW), real(words, at.HIGH), real(words, at.OWN_ZERO),
        real(words, at.OWN_FACTOR), real(words, at.MORE_ZERO), real(words, at.MORE_FACTOR),
    )  # fmt: skip
    size, added, flip = word(words, at.ITEMSIZE), word(words, at.ADDED), word(words, at.FLIP)
    pitch, added_pitch = word(words, at.Y_PITCH), word(words, at.ADDED_PITCH)
    factors = word(words, at.FACTORS) + 4 * _PANEL * panel
    for i in range(pixels[1] - pixels[0]):
        y = word(words, at.Y) + (pixels[0] + i) * pitch + column * size
        codes = added + (pixels[0] + i) * added_pitch + column
        for first in range(0, channels, LANES):
            given = sums + 4 * (_PANEL * i + first), factors + 4 * first
            task = (*given, y + first * size, channels - first, codes + first, flip)
            if word(words, at.RAW):
                finish_sums(task, numbers)
            elif size == 4:
                finish_floats(task, numbers)
            elif added != 0:
                finish_added(task, numbers)
            else:
                finish_codes(task, numbers)


@register_jitable
def _multiply_panel(words: int, table: int, sums: int, tiles: Span, panel: int) -> None:
    """One panel with all tiles of a block."""
    runs, depth = runs_of(words), word(words, at.DEPTH)
    per_group = ceil(word(words, at.CHANNELS), _PANEL)
    channels = word(words, at.CHANNELS) - panel % per_group * _PANEL
    weights = word(words, at.PANELS) + panel * runs * depth * 4 * _PANEL
    start = word(words, at.STARTS) + 4 * _PANEL * panel
    for tile in range(tiles[0], tiles[1]):
        pixels = pixels_of(words, tile)
        rows = table + 8 * ROWS * runs * (tile - tiles[0])
        narrow = 1 if channels <= LANES else 0
        products((pixels[1] - pixels[0], narrow, rows, runs, depth, weights, start, sums))
        _finish(words, sums, pixels, panel)


def convolve(words: int, part: int, parts: int) -> None:
    """Convolves with the words of quantised_words."""
    table, places, sums, most = _table(), _places(), _sums(), word(words, at.BLOCK_TILES)
    per_group = ceil(word(words, at.CHANNELS), _PANEL)
    tiles, panels = split(ceil(outputs(words), ROWS), word(words, at.GROUPS) * per_group, part, parts)
    panel = panels[0]
    while panel < panels[1]:
        group = panel // per_group
        end = min((group + 1) * per_group, panels[1])
        for first in range(tiles[0], tiles[1], most):
            block = first, min(first + most, tiles[1])
            fill(words, table, places, block, group)
            for number in range(panel, end):
                _multiply_panel(words, table, sums, block, number)
        panel = end


def copy_pixels(words: int, part: int, parts: int) -> None:
    """Copies pixels, each group of channels filled up to a multiple of four; int8 becomes uint8.

    The words: source, bytes from a pixel to the next, target, pixels, groups, channels of one, those of the target, and
    the bits to turn around (128 for int8).
    """
    groups, given, wanted, flip = word(words, 4), word(words, 5), word(words, 6), word(words, 7)
    first, last = share(word(words, 3), part, parts)
    for pixel in range(first, last):
        for group in range(groups):
            source = octets(word(words, 0) + pixel * word(words, 1) + group * given, given)
            target = octets(word(words, 2) + (pixel * groups + group) * wanted, wanted)
            for c in range(given):
                target[c] = source[c] ^ flip
            for c in range(given, wanted):
                target[c] = 0


def copy_lines(words: int, part: int, parts: int) -> None:
    """Copies lines of pixels with padding in front of and behind them; int8 becomes uint8.

    The words: source, bytes from a pixel to the next, target, lines, pixels of one, channels, pixels of padding in
    front, pixels of a line of the target, the byte that pads, and the bits to turn around (128 for int8).
    """
    width, channels, begin, line = word(words, 4), word(words, 5), word(words, 6), word(words, 7)
    pitch, pad, flip = word(words, 1), word(words, 8), word(words, 9)
    first, last = share(word(words, 3), part, parts)
    for number in range(first, last):
        source = octets(word(words, 0) + number * width * pitch, width * pitch)
        target = octets(word(words, 2) + number * line * channels, line * channels)
        target[: begin * channels] = pad
        target[(begin + width) * channels :] = pad
        if pitch == channels:
            for i in range(width * channels):
                target[begin * channels + i] = source[i] ^ flip
        else:
            for pixel in range(width):
                for c in range(channels):
                    target[(begin + pixel) * channels + c] = source[pixel * pitch + c] ^ flip
