"""LLVM code for the tile that products of quantised values are made of: rows of uint8 times a panel of int8, in int32.

As `vector_tile`, with four values where that has one float32: `products` leaves the sums of a tile in memory, `finish`
makes results of them. Written for AVX-512 with VNNI, whose one instruction (vpdpbusd) multiplies four
pairs of bytes in each of 16 lanes and adds them up; sums wrap around, nothing saturates in between.

    four inputs of a row, in every lane      x0 x1 x2 x3 | x0 x1 x2 x3 | x0 x1 x2 x3 | ...
    weights, a line of the panel             a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3 | ...     outputs a, b, c ...
    sums, int32                            += x . a      | x . b       | x . c       | ...

    registers:  14 rows x 2 vectors of sums, 2 vectors of weights, 1 of inputs: 31 of 32

Imports llvmlite: only modules of compiled code load it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from llvmlite import binding, ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
    BYTE,
    BYTES,
    FLOATS,
    INT,
    INTS,
    LANES,
    WORD,
    Value,
    advance,
    call,
    constant,
    counting,
    define,
    first_lanes,
    load,
    loop,
    pointer,
    prefetch,
    splat,
    splat_float,
    splat_int,
    store,
    switch,
    word,
)
from ops.native.intrinsics import intrinsic_of, intrinsic_of_two

ROWS, WIDTH = 14, 2
"""Pixels of a tile; vectors of outputs."""
_QUADS = ir.VectorType(BYTE, 4 * LANES)
LINE = 4 * LANES * WIDTH
"""Bytes of weights of a step, four inputs of 32 outputs, and of a row of 32 sums."""
_MASK, _CURRENT_ROUNDING = ir.IntType(LANES), 4
"""The type of a bit for each lane, and the mode of rounding that is set, as instructions take them."""
_UNROLLED = 4
"""Steps of one turn of the inner loop. More of them make the code longer, and its counting rarer."""
_AHEAD = 24
"""Steps that weights are prefetched ahead of their use: fewer may come too late, more may be evicted before it."""
_HAS_TYPED_BYTES = binding.llvm_version_info[0] >= 22
"""Since then LLVM's instruction takes bytes as bytes."""


class TileArgs(NamedTuple):
    """The words of `products`.

    rows: the address of runs x ROWS addresses of runs of 4 * depth uint8, of which the first `height` of each run are
    read. panel: address of (runs, depth, 32, 4) int8. start: address of (32,) int32, what sums begin with. sums:
    address of (height, 32) int32, the result. Where `narrow` is 1 instead of 0, only the first 16 of 32 are computed.
    """

    height: Value
    narrow: Value
    rows: Value
    runs: Value
    depth: Value
    panel: Value
    start: Value
    sums: Value


class ResultArgs(NamedTuple):
    """The words of `finish`, which writes the results of a tile of sums.

    sums: address of (height, 32) int32. factors: address of (32,) float32. target: that of the first result, `pitch`
    bytes in front of the next row. lanes: how many results a row has, at most 32. added, added_pitch: quantised values
    to add. `flip` are the bits that are inverted in them: 128 for int8, whose zero point is then 128 more; 0 for uint8.
    """

    sums: Value
    height: Value
    factors: Value
    target: Value
    pitch: Value
    lanes: Value
    added: Value
    added_pitch: Value
    flip: Value


class Scales(NamedTuple):
    """The numbers of `finish`, doubles: zero point and bounds of the results; then, where something is added:

    zero point and factor of the convolution's own quantised values, and of those that are added.
    """

    zero: Value
    low: Value
    high: Value
    own_zero: Value
    own_factor: Value
    added_zero: Value
    added_factor: Value


def _step(b: Value, rows: Sequence[Value], line: Value, i: int, sums: Sequence[Value]) -> list[Value]:
    """Returns the sums after four more inputs, number i behind the pointers to rows and to a line of weights."""
    vectors = len(sums) // len(rows)
    for v in range(WIDTH):
        prefetch(b, b.gep(line, [word(LINE * (i + _AHEAD) + 64 * v)]))
    kind = _QUADS if _HAS_TYPED_BYTES else INTS
    places = [b.bitcast(b.gep(line, [word(LINE * i + 64 * v)]), kind.as_pointer()) for v in range(vectors)]
    weights = [b.load(place, align=4) for place in places]
    results = []
    for number, row in enumerate(rows):
        inputs = splat(b, b.load(b.bitcast(b.gep(row, [word(4 * i)]), INT.as_pointer()), align=1))
        inputs = b.bitcast(inputs, kind) if _HAS_TYPED_BYTES else inputs
        for v, weight in enumerate(weights):
            arguments = [sums[number * vectors + v], inputs, weight]
            results.append(call(b, "llvm.x86.avx512.vpdpbusd.512", INTS, arguments))
    return results


def _emit(b: Value, rows: int, vectors: int, args: TileArgs) -> None:
    """Writes the code of a tile of so many rows and vectors."""
    first = [load(b, b.add(args.start, word(64 * v)), INTS) for v in range(vectors)]
    turns, rest = b.udiv(args.depth, word(_UNROLLED)), b.urem(args.depth, word(_UNROLLED))

    def run(number: Value, sums: list[Value]) -> Sequence[Value]:
        addresses = advance(b, args.rows, number, 8 * ROWS)
        starts = [b.load(pointer(b, addresses, WORD, 8 * i)) for i in range(rows)]
        bases = [b.inttoptr(s, BYTE.as_pointer()) for s in starts]
        line = pointer(b, b.add(args.panel, b.mul(number, b.mul(args.depth, word(LINE)))), BYTE)

        def turn(number: Value, sums: list[Value]) -> Sequence[Value]:
            here = [b.gep(base, [b.mul(number, word(4 * _UNROLLED))]) for base in bases]
            there = b.gep(line, [b.mul(number, word(LINE * _UNROLLED))])
            for i in range(_UNROLLED):
                sums = _step(b, here, there, i, sums)
            return sums

        def single(number: Value, sums: list[Value]) -> Sequence[Value]:
            k = b.add(number, b.mul(turns, word(_UNROLLED)))
            here = [b.gep(base, [b.mul(k, word(4))]) for base in bases]
            return _step(b, here, b.gep(line, [b.mul(k, word(LINE))]), 0, sums)

        return loop(b, rest, loop(b, turns, sums, turn), single)

    for i, total in enumerate(loop(b, args.runs, first * rows, run)):
        row, v = divmod(i, vectors)
        store(b, b.add(args.sums, word(LINE * row + 64 * v)), total)


def _products(b: Value, *words: Value) -> None:
    """Calls the function of a tile of that height and width, which is written once a module."""
    height, narrow, *rest = words

    def tile(rows: int, vectors: int) -> None:
        def emit(own: Value, inner: Sequence[Value]) -> None:
            _emit(own, rows, vectors, TileArgs(word(rows), word(int(vectors == 1)), *inner))

        b.call(define(b.module, f"arenaplan_codes_{rows}_{vectors}", len(rest), emit), rest)

    sizes = [(rows, vectors) for rows in range(1, ROWS + 1) for vectors in (WIDTH, 1)]
    cases = {2 * rows + int(vectors == 1): partial(tile, rows, vectors) for rows, vectors in sizes}
    switch(b, b.add(b.mul(height, word(2)), narrow), cases)


products = intrinsic_of(_products)
"""products(TileArgs(...)): the sums of a tile."""


class _Finish:
    """Writes the code from vectors of 16 sums to results."""

    def __init__(self, b: Value, scales: Scales, flip: Value) -> None:
        self.b = b
        self.scales = Scales(*(splat_float(b, number) for number in scales))
        self.flip = splat_int(b, flip)

    def rounded(self, real: Value, zero: Value, low: Value, high: Value) -> Value:
        """Returns round(real) + zero between bounds; NaN becomes the lower one."""
        b = self.b
        moved = b.fadd(call(b, "llvm.roundeven.v16f32", FLOATS, [real]), zero)
        raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
        return b.select(b.fcmp_ordered("<", raised, high), raised, high)

    def added(self, real: Value, codes: Value) -> Value:
        """Returns the sum, in steps of y, of the convolution's own quantised values and of others."""
        b, scales = self.b, self.scales
        own = b.fsub(
            self.rounded(real, scales.own_zero, constant(FLOATS, 0.0), constant(FLOATS, 255.0)), scales.own_zero
        )
        more = b.fsub(b.sitofp(b.xor(b.zext(codes, INTS), self.flip), FLOATS), scales.added_zero)
        return b.fadd(b.fmul(own, scales.own_factor), b.fmul(more, scales.added_factor))

    def codes(self, real: Value) -> Value:
        """Returns round(real) + zero between bounds as bytes; NaN becomes the lower one.

        Bounds are whole numbers, so that they may come first, and one instruction rounds to integers.
        """
        b, (zero, low, high, *_) = self.b, self.scales
        least, most = b.fsub(low, zero), b.fsub(high, zero)
        raised = b.select(b.fcmp_ordered(">", real, least), real, least)
        inside = b.select(b.fcmp_ordered("<", raised, most), raised, most)
        arguments = [inside, constant(INTS, 0), ir.Constant(_MASK, -1), ir.Constant(INT, _CURRENT_ROUNDING)]
        whole = call(b, "llvm.x86.avx512.mask.cvtps2dq.512", INTS, arguments)
        return b.trunc(b.add(whole, b.fptosi(zero, INTS)), BYTES)

    def floats(self, real: Value) -> Value:
        """Returns them as float32 between bounds; NaN stays NaN."""
        b, (_, low, high, *_) = self.b, self.scales
        raised = b.select(b.fcmp_ordered("<", real, low), low, real)
        return b.select(b.fcmp_ordered(">", raised, high), high, raised)


def _finish(kind: str) -> Any:
    size = 1 if kind in ("codes", "added") else 4

    def emit(b: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
        args = ResultArgs(*words)
        finish = _Finish(b, Scales(*numbers), args.flip)
        for v in range(WIDTH):
            with b.if_then(b.icmp_signed(">", args.lanes, word(LANES * v))):
                column(b, args, finish, v)

    def column(b: Value, args: ResultArgs, finish: _Finish, v: int) -> None:
        """Writes the code for one vector of each row."""
        mask = first_lanes(b, b.sub(args.lanes, word(LANES * v)))
        factor = load(b, b.add(args.factors, word(4 * LANES * v)), FLOATS)
        with counting(b, args.height) as row:
            total = load(b, b.add(advance(b, args.sums, row, LINE), word(4 * LANES * v)), INTS)
            target = b.add(advance(b, args.target, row, args.pitch), word(size * LANES * v))
            if kind == "sums":
                store(b, target, total, mask)
                return
            real = b.fmul(b.sitofp(total, FLOATS), factor)
            if kind == "added":
                place = b.add(advance(b, args.added, row, args.added_pitch), word(LANES * v))
                real = finish.added(real, load(b, place, BYTES, mask))
            store(b, target, finish.floats(real) if kind == "floats" else finish.codes(real), mask)

    return intrinsic_of_two(emit)


finish_codes, finish_added, finish_floats, finish_sums = map(_finish, ("codes", "added", "floats", "sums"))
"""f(ResultArgs(...), Scales(...)): writes the results of a tile as bytes, float32 or sums."""
