"""Depthwise convolution of channels-last quantised values, compiled for AVX-512. Imports numba: a door loads it.

16 channels at a time. Values and weights are widened to 32 bits; the instruction vpmaddwd multiplies both halves of 16
bits, and adds the two products. The upper halves are zero:

    value     0 x0 | 0 x1 | 0 x2 | ...            uint8 in the lower half, zero in the upper
    weight    0 w0 | 0 w1 | 0 w2 | ...            int8 as 16 bits in the lower half, zero in the upper
    sums    + x0*w0 | x1*w1 | x2*w2 | ...
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from ops.convolution.args import TABLE
from ops.convolution.indirect_code import ceil_div, output_pixels, taps_of, tile_pixels
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
from ops.native.emit.byte_tile import ROWS, ResultArgs
from ops.native.intrinsics import intrinsic_of, stack
from ops.native.memory import jitable, record_at, share
from ops.quantised.args import CONV_ARGS
from ops.quantised.nhwc_code import scales_of, write_results, write_tables

_HALVES = ir.VectorType(ir.IntType(16), 2 * LANES)
_table, _sums = stack(8 * TABLE), stack(4 * LANES)


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
        values = load(b, b.add(place, column), BYTES, None if whole else mask)
        wide = b.bitcast(b.zext(b.xor(values, flipped), INTS), _HALVES)
        factor = b.load(pointer(b, advance(b, weights, number, pitch), _HALVES), align=4)
        return [b.add(sums[0], call(b, "llvm.x86.avx512.pmaddw.d.512", INTS, [wide, factor]))]

    first = load(b, start, INTS)
    with b.if_else(full) as (then, other):
        for branch, whole in ((then, True), (other, False)):
            with branch:
                (total,) = loop(b, runs, [first], partial(tap, whole=whole))
                store(b, target, total)


_sum = intrinsic_of(_emit)


@jitable
def _write_pixel(args: Any, rows: int, sums: int, pixel: int) -> None:
    """Computes all channels of one pixel, whose taps are in a column of the table."""
    channels, runs, size, scales = args.groups, taps_of(args), args.itemsize, scales_of(args)
    pitch = 4 * LANES * ceil_div(channels, LANES)
    y, added = args.y + pixel * args.y_pitch, args.added + pixel * args.added_pitch
    for c in range(0, channels, LANES):
        weights, start = args.panels + 4 * c, args.starts + 4 * c
        _sum((rows, runs, c, weights, pitch, start, sums, channels - c, args.x_flip))
        results = ResultArgs(sums, args.factors + 4 * c, y + c * size, channels - c, added + c, args.flip)
        write_results(args, results, scales)


def convolve(address: int, part: int, parts: int) -> None:
    """Convolves; the arguments are a CONV_ARGS record, of which a group is a channel."""
    args, table, sums = record_at(address, CONV_ARGS), _table(), _sums()
    begin, end = share(ceil_div(output_pixels(args), ROWS), part, parts)
    for first in range(begin, end, args.block_tiles):
        block = first, min(first + args.block_tiles, end)
        write_tables(args, table, block, 0)
        for tile in range(block[0], block[1]):
            pixels = tile_pixels(args, tile, ROWS)
            rows = table + 8 * ROWS * taps_of(args) * (tile - first)
            for pixel in range(pixels[0], pixels[1]):
                _write_pixel(args, rows + 8 * (pixel - pixels[0]), sums, pixel)
