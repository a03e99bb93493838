"""Depthwise convolution of channels-last codes, compiled for AVX-512. Imports numba: loaded by ops.native.door.

16 channels at a time: bytes and weights, each as two halves of 32 bits, are multiplied by the instruction that adds the
products of both halves; the upper ones are zero.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import register_jitable

from ops.native.emit.builder import (
    BYTE,
    BYTES,
    INTS,
    LANES,
    WORD,
    Value,
    advance,
    call,
    first_lanes,
    load,
    loop,
    pointer,
    splat,
    store,
)
from ops.native.emit.byte_tile import ROWS, finish_added, finish_codes, finish_floats
from ops.native.intrinsics import intrinsic_of
from ops.native.memory import real, share, word
from ops.quantised import nhwc_args as at
from ops.quantised.nhwc_indirect_code import ceil, fill, outputs, pixels_of, runs_of, stack

_HALVES = ir.VectorType(ir.IntType(16), 2 * LANES)
_table, _places, _sums = stack(at.TABLE), stack(64), stack(8)


def _emit(  # noqa: PLR0917 - the words of a call
    b: Value,
    table: Value,
    runs: Value,
    column: Value,
    weights: Value,
    pitch: Value,
    start: Value,
    target: Value,
    lanes: Value,
    flip: Value,
) -> None:
    mask, flipped = first_lanes(b, lanes), splat(b, b.trunc(flip, BYTE))
    full = b.icmp_signed(">=", lanes, ir.Constant(WORD, LANES))

    def tap(number: Value, sums: list[Value], *, whole: bool) -> Sequence[Value]:
        place = b.load(pointer(b, advance(b, table, number, 8 * ROWS), WORD))
        codes = load(b, b.add(place, column), BYTES, None if whole else mask)
        wide = b.bitcast(b.zext(b.xor(codes, flipped), INTS), _HALVES)
        factor = b.load(pointer(b, advance(b, weights, number, pitch), _HALVES), align=4)
        return [b.add(sums[0], call(b, "llvm.x86.avx512.pmaddw.d.512", INTS, [wide, factor]))]

    first = load(b, start, INTS)
    with b.if_else(full) as (then, other):
        for branch, whole in ((then, True), (other, False)):
            with branch:
                (total,) = loop(b, runs, [first], partial(tap, whole=whole))
                store(b, target, total)


_sum = intrinsic_of(_emit)


@register_jitable
def _pixel(words: int, rows: int, sums: int, pixel: int, numbers: Any) -> None:
    """All channels of one pixel, whose taps are in a column of the table."""
    channels, runs = word(words, at.GROUPS), runs_of(words)
    pitch = 4 * LANES * ceil(channels, LANES)
    size, added, flip = word(words, at.ITEMSIZE), word(words, at.ADDED), word(words, at.FLIP)
    y, codes = word(words, at.Y) + pixel * word(words, at.Y_PITCH), added + pixel * word(words, at.ADDED_PITCH)
    for c in range(0, channels, LANES):
        weights, start = word(words, at.PANELS) + 4 * c, word(words, at.STARTS) + 4 * c
        _sum((rows, runs, c, weights, pitch, start, sums, channels - c, word(words, at.DEPTH)))
        task = sums, word(words, at.FACTORS) + 4 * c, y + c * size, channels - c, codes + c, flip
        if size == 4:
            finish_floats(task, numbers)
        elif added != 0:
            finish_added(task, numbers)
        else:
            finish_codes(task, numbers)


def convolve(words: int, part: int, parts: int) -> None:
    """Convolves with the words of quantised_words: a group is a channel, and DEPTH the bits to turn in x."""
    table, places, sums, most = _table(), _places(), _sums(), word(words, at.BLOCK_TILES)
    numbers = (
        real(words, at.ZERO), real(words, at.LOW), real(words, at.HIGH), real(words, at.OWN_ZERO),
        real(words, at.OWN_FACTOR), real(words, at.MORE_ZERO), real(words, at.MORE_FACTOR),
    )  # fmt: skip
    begin, end = share(ceil(outputs(words), ROWS), part, parts)
    for first in range(begin, end, most):
        last = min(first + most, end)
        fill(words, table, places, (first, last), 0)
        for tile in range(first, last):
            pixels = pixels_of(words, tile)
            rows = table + 8 * ROWS * runs_of(words) * (tile - first)
            for pixel in range(pixels[0], pixels[1]):
                _pixel(words, rows + 8 * (pixel - pixels[0]), sums, pixel, numbers)
