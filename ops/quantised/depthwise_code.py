"""Depthwise convolution of channels-last quantised values, compiled for AVX-512. Imports numba: a door loads it.

16 channels at a time. Values and weights are widened to 32 bits; the instruction vpmaddwd multiplies both halves of 16
bits, and adds the two products. The upper halves of weights are zero:

    value     0 x0 | 0 x1 | 0 x2 | ...            uint8 in the lower half, zero in the upper; int8 with its sign there
    weight    0 w0 | 0 w1 | 0 w2 | ...            int8 as 16 bits in the lower half, zero in the upper
    sums    + x0*w0 | x1*w1 | x2*w2 | ...
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import jitable
from ops.convolution.args import TABLE
from ops.convolution.indirect_code import ceil_div, output_pixels, taps_of, tile_pixels
from ops.native.emit.builder import (
    BYTES,
    INTS,
    LANES,
    WORD,
    Value,
    advance,
    call,
    define,
    first_lanes,
    load,
    loop,
    pointer,
    store,
    switch,
    word,
)
from ops.native.emit.byte_tile import LINE, ROWS, ResultArgs
from ops.native.intrinsics import intrinsic_of, stack
from ops.native.memory import record_at, share
from ops.quantised.args import CONV_ARGS
from ops.quantised.nhwc_code import scales_of, write_results, write_tables

_HALVES = ir.VectorType(ir.IntType(16), 2 * LANES)
_GROUPS = (8, 4, 2, 1)
"""Pixels that are computed at once: each keeps its sums in a register, and all share what is read of the weights."""
_table, _sums = stack(8 * TABLE), stack(LINE * ROWS)


class SumArgs(NamedTuple):
    """What the code of a group of pixels is made for, and its words.

    signed: whether x is int8. whole: whether all 16 lanes count. table: the address of rows of ROWS addresses of pixels
    of x, a row for each of `runs` taps. column: the first channel. weights: of 16 channels, `pitch` bytes from tap to
    tap. start: what sums begin with. sums: where they are written, LINE bytes from pixel to pixel.
    """

    signed: bool
    whole: bool
    table: Value
    runs: Value
    column: Value
    weights: Value
    pitch: Value
    start: Value
    sums: Value
    lanes: Value


def _emit(b: Value, count: int, args: SumArgs) -> None:
    """Writes the code for some pixels, whose taps stand side by side in the table."""
    mask = None if args.whole else first_lanes(b, args.lanes)
    widened = b.sext if args.signed else b.zext

    def tap(number: Value, sums: list[Value]) -> Sequence[Value]:
        addresses = advance(b, args.table, number, 8 * ROWS)
        factor = b.load(pointer(b, advance(b, args.weights, number, args.pitch), _HALVES), align=4)
        results = []
        for i, total in enumerate(sums):
            place = b.load(pointer(b, addresses, WORD, 8 * i))
            wide = b.bitcast(widened(load(b, b.add(place, args.column), BYTES, mask), INTS), _HALVES)
            results.append(b.add(total, call(b, "llvm.x86.avx512.pmaddw.d.512", INTS, [wide, factor])))
        return results

    first = load(b, args.start, INTS)
    for i, total in enumerate(loop(b, args.runs, [first] * count, tap)):
        store(b, b.add(args.sums, word(LINE * i)), total)


def _dispatch(b: Value, count: Value, *words: Value) -> None:
    """Calls the function for so many pixels, which is written once a module."""
    signed, whole, *rest = words

    def group(count: int, flags: int) -> None:
        def emit(own: Value, inner: Sequence[Value]) -> None:
            _emit(own, count, SumArgs(bool(flags & 2), bool(flags & 1), *inner))

        b.call(define(b.module, f"arenaplan_depthwise_{count}_{flags}", len(rest), emit), rest)

    cases = {4 * count + flags: partial(group, count, flags) for count in _GROUPS for flags in range(4)}
    switch(b, b.add(b.mul(count, word(4)), b.add(b.mul(signed, word(2)), whole)), cases)


_sum = intrinsic_of(_dispatch)


@jitable
def _write_tile(args: Any, rows: int, sums: int, pixels: tuple[int, int]) -> None:
    """Computes all channels of the pixels of a tile, whose taps are in a table."""
    channels, runs, size, scales = args.groups, taps_of(args), args.itemsize, scales_of(args)
    pitch, height = 4 * LANES * ceil_div(channels, LANES), pixels[1] - pixels[0]
    signed = 1 if args.x_flip else 0
    y, added = args.y + pixels[0] * args.y_pitch, args.added + pixels[0] * args.added_pitch
    for c in range(0, channels, LANES):
        lanes, start = min(LANES, channels - c), args.starts + 4 * c
        whole, first = 1 if lanes == LANES else 0, 0
        while first < height:
            count = _most_pixels(height - first)
            place = rows + 8 * first, runs, c, args.panels + 4 * c
            _sum((count, signed, whole, *place, pitch, start, sums + LINE * first, lanes))
            first += count
        factors, here = args.factors + 4 * c, y + c * size
        results = ResultArgs(sums, height, factors, here, args.y_pitch, lanes, added + c, args.added_pitch, args.flip)
        write_results(args, results, scales)


@jitable
def _most_pixels(left: int) -> int:
    """Returns the largest group of at most so many pixels."""
    for count in _GROUPS:
        if count <= left:
            return count
    return 0


@entry(fastmath=EXACT, needs=("avx512vnni",))
def convolve(address: int, part: int, parts: int) -> None:
    """Convolves; the arguments are a CONV_ARGS record, of which a group is a channel."""
    args, table, sums = record_at(address, CONV_ARGS), _table(), _sums()
    begin, end = share(ceil_div(output_pixels(args), ROWS), part, parts)
    for first in range(begin, end, args.block_tiles):
        block = first, min(first + args.block_tiles, end)
        write_tables(args, table, block, 0)
        for tile in range(block[0], block[1]):
            rows = table + 8 * ROWS * taps_of(args) * (tile - first)
            _write_tile(args, rows, sums, tile_pixels(args, tile, ROWS))
