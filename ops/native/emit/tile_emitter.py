"""LLVM code of one tile: sums that start, grow by products, and are finished, all in registers.

`ops.native.emit.vector_tile` says what a tile is given. Imports llvmlite: only modules of compiled code load it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.tile_shapes import CLIP, LEAK, TileShape

Value = Any
WORD = ir.IntType(64)
_INDEX, _BIT = ir.IntType(32), ir.IntType(1)
_FLOAT, _DOUBLE, _BYTE = ir.FloatType(), ir.DoubleType(), ir.IntType(8)
_AHEAD = 32
"""Steps along the depth that weights are asked for before they are used: they may come from far."""
_UNROLLED = 4
"""Steps of one turn of the inner loop."""


class Task(NamedTuple):
    """The words of one tile, as LLVM values."""

    rows: Value
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


def constant(number: int) -> Value:
    """A word."""
    return ir.Constant(WORD, number)


class Tile:
    """Writes the code of one tile: sums[row * vectors + v]."""

    def __init__(self, builder: Value, shape: TileShape, rows: int, vectors: int) -> None:
        self.b, self.shape, self.rows, self.vectors = builder, shape, rows, vectors
        self.vector = ir.VectorType(_FLOAT, shape.lanes)
        self.lanes = ir.VectorType(_BIT, shape.lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * shape.lanes)

    def emit(self, task: Task) -> None:
        """The whole of it."""
        full = self.b.icmp_signed(">=", task.channels, constant(self.vectors * self.shape.lanes))
        masks = [self.mask(task.channels, v) for v in range(self.vectors)]
        sums = self.starts(task, full, masks)
        sums = self.products(task, sums)
        sums = self.finished(task, sums)
        self.either(full, lambda: self.store(task, sums, ()), lambda: self.store(task, sums, masks))

    def splat(self, scalar: Value) -> Value:
        """A scalar in each lane."""
        kind = ir.VectorType(scalar.type, self.shape.lanes)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_INDEX, 0))
        order = ir.Constant(ir.VectorType(_INDEX, self.shape.lanes), [0] * self.shape.lanes)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), order)

    def mask(self, channels: Value, v: int) -> Value:
        """The lanes of vector v that are channels."""
        lanes, first = self.shape.lanes, self.shape.lanes * v
        numbers = ir.Constant(ir.VectorType(_INDEX, lanes), [first + i for i in range(lanes)])
        return self.b.icmp_signed("<", numbers, self.splat(self.b.trunc(channels, _INDEX)))

    def pointer(self, address: Value, offset: int = 0, kind: Value = None) -> Value:
        """A pointer to a vector, or to what is given, `offset` bytes behind an address."""
        place = self.b.add(address, constant(offset)) if offset else address
        return self.b.inttoptr(place, (kind or self.vector).as_pointer())

    def call(self, name: str, result: Value, arguments: Sequence[Value]) -> Value:
        """A call of the intrinsic of LLVM that has this name."""
        module = self.b.module
        known = module.globals.get(name)
        if known is None:
            known = ir.Function(module, ir.FunctionType(result, [a.type for a in arguments]), name)
        return self.b.call(known, arguments)

    def each(self, start: Value, pitch: Value) -> list[Value]:
        """The addresses of the vectors of a tile in memory."""
        rows = [start]
        for _ in range(self.rows - 1):
            rows.append(self.b.add(rows[-1], pitch))
        return [self.b.add(r, constant(4 * self.shape.lanes * v)) for r in rows for v in range(self.vectors)]

    def load(self, places: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
        """The vectors at these addresses; where there are masks, one for each of a row, their lanes alone."""
        if not masks:
            return [self.b.load(self.pointer(p), align=4) for p in places]
        name, align = f"llvm.masked.load.v{self.shape.lanes}f32.p0", ir.Constant(_INDEX, 4)
        return [
            self.call(name, self.vector, [self.pointer(p), align, masks[i % self.vectors], self.zeros])
            for i, p in enumerate(places)
        ]

    def store(self, task: Task, sums: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
        """Writes y in the same way; gives nothing."""
        name, align = f"llvm.masked.store.v{self.shape.lanes}f32.p0", ir.Constant(_INDEX, 4)
        for i, (place, value) in enumerate(zip(self.each(task.y, task.y_pitch), sums, strict=True)):
            if masks:
                self.call(name, ir.VoidType(), [value, self.pointer(place), align, masks[i % self.vectors]])
            else:
                self.b.store(value, self.pointer(place), align=4)
        return []

    def starts(self, task: Task, full: Value, masks: Sequence[Value]) -> list[Value]:
        """What the sums begin with."""
        places = self.each(task.first, task.first_pitch)
        sums = self.either(full, lambda: self.load(places, ()), lambda: self.load(places, masks))

        def add(masks: Sequence[Value]) -> list[Value]:
            found = self.load(self.each(task.added, task.added_pitch), masks)
            return [self.b.fadd(s, f) for s, f in zip(sums, found, strict=True)]

        def added() -> list[Value]:
            return self.either(full, lambda: add(()), lambda: add(masks))

        return self.either(self.b.icmp_signed("!=", task.added, constant(0)), added, lambda: sums)

    def either(
        self, condition: Value, then: Callable[[], list[Value]], other: Callable[[], list[Value]]
    ) -> list[Value]:
        """The vectors that one of the two gives."""
        blocks = [self.b.append_basic_block(n) for n in ("then", "else", "join")]
        self.b.cbranch(condition, *blocks[:2])
        ends, results = [], []
        for block, code in zip(blocks, (then, other), strict=False):
            self.b.position_at_end(block)
            results.append(code())
            ends.append(self.b.block)
            self.b.branch(blocks[2])
        self.b.position_at_end(blocks[2])
        return [self.joined(pair, ends) for pair in zip(*results, strict=True)]

    def joined(self, values: Sequence[Value], blocks: Sequence[Value]) -> Value:
        """The value of the block that control came from."""
        phi = self.b.phi(values[0].type)
        for value, block in zip(values, blocks, strict=True):
            phi.add_incoming(value, block)
        return phi

    def loop(
        self, count: Value, carried: Sequence[Value], step: Callable[[Value, list[Value]], Sequence[Value]]
    ) -> list[Value]:
        """The vectors after `count` (maybe 0) steps: each is given its number and the vectors before it."""
        before, head, body, after = self.b.block, *(self.b.append_basic_block(n) for n in ("head", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        number, found = self.b.phi(WORD), [self.b.phi(c.type) for c in carried]
        self.b.cbranch(self.b.icmp_signed("<", number, count), body, after)
        self.b.position_at_end(body)
        results = step(number, found)
        pairs = zip((number, *found), (constant(0), *carried), (self.b.add(number, constant(1)), *results), strict=True)
        for phi, first, following in pairs:
            phi.add_incoming(first, before)
            phi.add_incoming(following, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)
        return found

    def products(self, task: Task, sums: list[Value]) -> list[Value]:
        """The sums after all runs."""
        size = 4 * self.shape.lanes * self.shape.width
        whole = self.b.udiv(task.depth, constant(_UNROLLED))
        rest = self.b.urem(task.depth, constant(_UNROLLED))

        def run(number: Value, sums: list[Value]) -> Sequence[Value]:
            table = self.b.add(task.rows, self.b.mul(number, constant(8 * self.shape.rows)))
            rows = [self.b.load(self.pointer(table, 8 * i, WORD)) for i in range(self.rows)]
            panel = self.b.add(task.panel, self.b.mul(number, self.b.mul(task.depth, constant(size))))
            places = [self.b.inttoptr(r, _FLOAT.as_pointer()) for r in rows]

            def turn(number: Value, sums: list[Value]) -> list[Value]:
                k = self.b.mul(number, constant(_UNROLLED))
                for i in range(_UNROLLED):
                    sums = self.step(places, panel, k, i, sums)
                return sums

            def single(number: Value, sums: list[Value]) -> list[Value]:
                return self.step(places, panel, self.b.add(number, done), 0, sums)

            sums = self.loop(whole, sums, turn)
            done = self.b.mul(whole, constant(_UNROLLED))
            return self.loop(rest, sums, single)

        return self.loop(task.runs, sums, run)

    def step(self, places: Sequence[Value], panel: Value, k: Value, i: int, sums: list[Value]) -> list[Value]:
        """The sums after element k + i of a run."""
        lanes, width = self.shape.lanes, self.shape.width
        line = self.b.inttoptr(self.b.add(panel, self.b.mul(k, constant(4 * lanes * width))), _BYTE.as_pointer())
        base = 4 * lanes * width * i

        def at(offset: int, kind: Value) -> Value:
            return self.b.bitcast(self.b.gep(line, [constant(offset)]), kind.as_pointer())

        for offset in range(0, 4 * lanes * width, 64):
            hints = [ir.Constant(_INDEX, n) for n in (0, 3, 1)]
            far = self.b.gep(line, [constant(base + offset + 4 * lanes * width * _AHEAD)])
            self.call("llvm.prefetch.p0", ir.VoidType(), [far, *hints])
        weights = [self.b.load(at(base + 4 * lanes * v, self.vector), align=4) for v in range(self.vectors)]
        found = []
        for row, place in enumerate(places):
            element = self.b.gep(self.b.gep(place, [k]), [constant(i)])
            pixel = self.splat(self.b.load(element, align=4))
            for v, weight in enumerate(weights):
                arguments = [pixel, weight, sums[row * self.vectors + v]]
                found.append(self.call(f"llvm.fmuladd.v{lanes}f32", self.vector, arguments))
        return found

    def number(self, task: Task, index: int) -> Value:
        """A double of the finish, in each lane."""
        value = self.b.load(self.pointer(task.finish, 8 * index, _DOUBLE))
        return self.splat(self.b.fptrunc(value, _FLOAT))

    def finished(self, task: Task, sums: list[Value]) -> list[Value]:
        """The sums after the activation."""
        kind = self.b.load(self.pointer(task.finish, 0, WORD))
        leaks, clips = (self.b.icmp_signed("==", kind, constant(n)) for n in (LEAK, CLIP))
        return self.either(
            clips,
            lambda: self.clip(sums, self.number(task, 1), self.number(task, 2)),
            lambda: self.either(leaks, lambda: self.leak(sums, self.number(task, 3)), lambda: sums),
        )

    def clip(self, sums: Sequence[Value], low: Value, high: Value) -> list[Value]:
        """Between two bounds; NaN is no less and no more than either, so it stays."""
        raised = [self.b.select(self.b.fcmp_ordered(">", low, s), low, s) for s in sums]
        return [self.b.select(self.b.fcmp_ordered("<", high, s), high, s) for s in raised]

    def leak(self, sums: Sequence[Value], slope: Value) -> list[Value]:
        """What is negative is multiplied by the slope."""
        negative = [self.b.fcmp_ordered("<", s, self.zeros) for s in sums]
        return [self.b.select(n, self.b.fmul(s, slope), s) for n, s in zip(negative, sums, strict=True)]
