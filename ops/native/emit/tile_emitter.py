"""LLVM code of one tile: sums that start, grow by products, and are finished, all in registers.

                               panel: vectors of weights of input k
                                   w0           w1
    row 0, its input k: x0     sum[0][0]    sum[0][1]        sum[row][v] += splat(x[row]) * w[v]
    row 1, its input k: x1     sum[1][0]    sum[1][1]
    ...                           ...          ...           for k = 0, 1, 2 ... of each run
    row 13             x13     sum[13][0]   sum[13][1]

With AVX-512 that is 14 x 2 sums, 2 weights and 1 input: 31 of 32 registers. `ops.native.emit.vector_tile` says what a
tile is passed. Imports llvmlite: only modules of compiled code load it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
    BYTE,
    DOUBLE,
    FLOAT,
    WORD,
    Value,
    advance,
    choose,
    constant,
    first_lanes,
    fused,
    load,
    loop,
    pointer,
    prefetch,
    splat,
    splat_float,
    store,
    word,
)
from ops.native.emit.tile_shapes import CLIP, FINISH, LEAK, TileShape
from ops.native.records import offset

_AHEAD = 32
"""Steps along the depth that weights are prefetched before they are used: fewer may come too late from memory."""
_UNROLLED = 4
"""Steps of one turn of the inner loop. More of them make the code longer, and its counting rarer."""


class TileArgs(NamedTuple):
    """The words of one tile, as `ops.native.emit.vector_tile` explains them."""

    rows: Value
    height: Value
    runs: Value
    depth: Value
    panel: Value
    first: Value
    first_pitch: Value
    added: Value
    added_pitch: Value
    y: Value
    y_pitch: Value
    channels: Value
    finish: Value


class Tile:
    """Writes the code of one tile: sums[row * vectors + v]."""

    def __init__(self, builder: Value, shape: TileShape, rows: int, vectors: int) -> None:
        self.b, self.shape, self.rows, self.vectors = builder, shape, rows, vectors
        self.vector = ir.VectorType(FLOAT, shape.lanes)
        self.zeros = constant(self.vector, 0.0)
        self.line = 4 * shape.lanes * shape.width
        """Bytes of weights of one input."""

    def emit(self, args: TileArgs) -> None:
        """Writes the code of the tile."""
        b, lanes = self.b, self.shape.lanes
        full = b.icmp_signed(">=", args.channels, word(self.vectors * lanes))
        masks = [first_lanes(b, args.channels, lanes, lanes * v) for v in range(self.vectors)]
        sums = self.starts(args, full, masks)
        sums = self.products(args, sums)
        sums = self.finished(args, sums)
        choose(b, full, lambda: self.store(args, sums, ()), lambda: self.store(args, sums, masks))

    def addresses(self, start: Value, pitch: Value) -> list[Value]:
        """Returns the addresses of the vectors of a tile in memory."""
        rows = [start]
        for _ in range(self.rows - 1):
            rows.append(self.b.add(rows[-1], pitch))
        return [self.b.add(r, word(4 * self.shape.lanes * v)) for r in rows for v in range(self.vectors)]

    def load(self, addresses: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
        """Returns the vectors at these addresses; `masks` has one for each vector of a row, or none at all."""
        chosen = masks or [None] * self.vectors
        return [load(self.b, a, self.vector, chosen[i % self.vectors]) for i, a in enumerate(addresses)]

    def store(self, args: TileArgs, sums: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
        """Writes y in the same way; returns nothing, as a branch without values."""
        chosen = masks or [None] * self.vectors
        for i, (place, value) in enumerate(zip(self.addresses(args.y, args.y_pitch), sums, strict=True)):
            store(self.b, place, value, chosen[i % self.vectors])
        return []

    def starts(self, args: TileArgs, full: Value, masks: Sequence[Value]) -> list[Value]:
        """Returns what the sums begin with."""
        b, places = self.b, self.addresses(args.first, args.first_pitch)
        sums = choose(b, full, lambda: self.load(places, ()), lambda: self.load(places, masks))

        def add(masks: Sequence[Value]) -> list[Value]:
            addends = self.load(self.addresses(args.added, args.added_pitch), masks)
            return [b.fadd(s, a) for s, a in zip(sums, addends, strict=True)]

        def added() -> list[Value]:
            return choose(b, full, lambda: add(()), lambda: add(masks))

        return choose(b, b.icmp_signed("!=", args.added, word(0)), added, lambda: sums)

    def products(self, args: TileArgs, sums: list[Value]) -> list[Value]:
        """Returns the sums after all runs."""
        b = self.b
        turns, rest = b.udiv(args.depth, word(_UNROLLED)), b.urem(args.depth, word(_UNROLLED))

        def run(number: Value, sums: list[Value]) -> Sequence[Value]:
            table = advance(b, args.rows, number, 8 * self.shape.rows)
            rows = [b.load(pointer(b, table, WORD, 8 * i)) for i in range(self.rows)]
            panel = b.add(args.panel, b.mul(number, b.mul(args.depth, word(self.line))))
            places = [b.inttoptr(r, FLOAT.as_pointer()) for r in rows]

            def turn(number: Value, sums: list[Value]) -> list[Value]:
                k = b.mul(number, word(_UNROLLED))
                for i in range(_UNROLLED):
                    sums = self.step(places, panel, k, i, sums)
                return sums

            def single(number: Value, sums: list[Value]) -> list[Value]:
                return self.step(places, panel, b.add(number, done), 0, sums)

            sums = loop(b, turns, sums, turn)
            done = b.mul(turns, word(_UNROLLED))
            return loop(b, rest, sums, single)

        return loop(b, args.runs, sums, run)

    def step(self, places: Sequence[Value], panel: Value, k: Value, i: int, sums: list[Value]) -> list[Value]:
        """Returns the sums after element k + i of a run."""
        b, lanes = self.b, self.shape.lanes
        line = b.inttoptr(advance(b, panel, k, self.line), BYTE.as_pointer())

        def weights_at(position: int) -> Value:
            return b.bitcast(b.gep(line, [word(position)]), self.vector.as_pointer())

        for position in range(0, self.line, 64):
            prefetch(b, b.gep(line, [word(self.line * (i + _AHEAD) + position)]))
        weights = [b.load(weights_at(self.line * i + 4 * lanes * v), align=4) for v in range(self.vectors)]
        results = []
        for row, place in enumerate(places):
            element = b.gep(b.gep(place, [k]), [word(i)])
            pixel = splat(b, b.load(element, align=4), lanes)
            results += [fused(b, pixel, w, sums[row * self.vectors + v]) for v, w in enumerate(weights)]
        return results

    def number(self, args: TileArgs, name: str) -> Value:
        """Returns a number of the FINISH record in each lane."""
        value = self.b.load(pointer(self.b, args.finish, DOUBLE, offset(FINISH, name)))
        return splat_float(self.b, value, self.shape.lanes)

    def finished(self, args: TileArgs, sums: list[Value]) -> list[Value]:
        """Returns the sums after the activation."""
        b = self.b
        kind = b.load(pointer(b, args.finish, WORD, offset(FINISH, "kind")))
        leaks, clips = (b.icmp_signed("==", kind, word(n)) for n in (LEAK, CLIP))
        return choose(
            b,
            clips,
            lambda: self.clip(sums, self.number(args, "low"), self.number(args, "high")),
            lambda: choose(b, leaks, lambda: self.leak(sums, self.number(args, "slope")), lambda: sums),
        )

    def clip(self, sums: Sequence[Value], low: Value, high: Value) -> list[Value]:
        """Returns the sums between two bounds; NaN is no less and no more than either, so it stays."""
        raised = [self.b.select(self.b.fcmp_ordered(">", low, s), low, s) for s in sums]
        return [self.b.select(self.b.fcmp_ordered("<", high, s), high, s) for s in raised]

    def leak(self, sums: Sequence[Value], slope: Value) -> list[Value]:
        """Returns the sums, those that are negative multiplied by the slope."""
        negative = [self.b.fcmp_ordered("<", s, self.zeros) for s in sums]
        return [self.b.select(n, self.b.fmul(s, slope), s) for n, s in zip(negative, sums, strict=True)]
