"""LLVM code for the tile that products of float32 are made of: some rows times a panel of weights, finished at once.

A row is what a pixel (a row of a matrix) gives to the product: `runs` runs of `depth` floats side by side, each
anywhere in memory. A panel is the weights of `channels` outputs, (runs * depth, channels), dense; what it lacks is
zeros. So a matrix product is one run a row, a convolution one a tap. The sums stay in registers from the first product
to the last clip. Imports llvmlite: only modules of compiled code load it. numba watches the files of those modules
alone: after a change of this one, touch them.

    multiply = vector_tile.intrinsic(AVX512)            # in a module of compiled code
    multiply((rows, height, runs, depth, panel, first, first_pitch, added, added_pitch, y, y_pitch, channels, finish))

All are int64, addresses and pitches in bytes. `rows`: runs x `shape.rows` addresses of runs, the first `height` of each
are read. `first`, `first_pitch`: what the sums begin with, (height, channels); a bias has pitch 0; y itself, with what
earlier panels gave, goes on with them. `added`: an address, or 0: one more addend, which may be y. `channels`: how many
of the panel's exist, at least 1; no other is read from `first` and `added`, or written. `finish`: address of four
words: NONE, CLIP or LEAK, and as doubles low, high and slope; NaN stays NaN. Each sum is one chain of fused
multiplications and additions in the order of the runs: how rows fall into tiles changes no bit of it. All may lie
anywhere; panels are best at a multiple of ALIGNMENT. Up to 32 lines behind a panel are asked for, not read.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic as numba_intrinsic

from ops.native.tiles import CLIP, LEAK, SHAPES, TileShape

Value = Any
_WORD, _INDEX, _BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
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


def intrinsic(shape: TileShape) -> Any:
    """The function of a tuple of 13 words that multiplies a tile, for use in compiled code."""

    def typed(_: Any, words: Any) -> Any:
        return types.void(words), _generator(shape)

    return numba_intrinsic(typed)


def _generator(shape: TileShape) -> Callable[..., Any]:
    """What writes the code of a call."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = [builder.extract_value(values[0], i) for i in range(len(signature.args[0]))]
        _dispatch(builder, shape, words[1], [words[0], *words[2:]])
        return context.get_dummy_value()

    return generate


def _typed_by_tag(_: Any, shape: Any, words: Any) -> Any:
    generate = _generator(SHAPES[len(shape) - 1])

    def generate_last(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return generate(context, builder, types.void(signature.args[1]), values[1:])

    return types.void(shape, words), generate_last


multiply: Any = numba_intrinsic(_typed_by_tag)
"""multiply(tag, words): the same where the type of a tuple of numbers says which shape; see `TileShape.tag`."""


def _word(number: int) -> Value:
    return ir.Constant(_WORD, number)


def _dispatch(builder: Value, shape: TileShape, height: Value, words: Sequence[Value]) -> None:
    """Calls the tile of that height, and of as many vectors as the channels need."""
    after = builder.append_basic_block("after")
    narrow = builder.icmp_signed("<=", Task(*words).channels, _word(shape.lanes))
    code = builder.add(builder.mul(height, _word(2)), builder.zext(narrow, _WORD))
    switch = builder.switch(code, after)
    for rows in range(1, shape.rows + 1):
        for vectors in (shape.width, 1):
            block = builder.append_basic_block("tile")
            switch.add_case(_word(2 * rows + int(vectors == 1)), block)
            with builder.goto_block(block):
                builder.call(tile_function(builder.module, shape, rows, vectors), words)
                builder.branch(after)
    builder.position_at_end(after)


def tile_function(module: Value, shape: TileShape, rows: int, vectors: int) -> Value:
    """The function of a tile of so many rows and vectors; written once a module."""
    name = f"arenaplan_tile_{shape.lanes}_{rows}_{vectors}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WORD] * len(Task._fields)), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _Tile(builder, shape, rows, vectors).emit(Task(*function.args))
    builder.ret_void()
    return function


class _Tile:
    """Writes the code of one tile: sums[row * vectors + v]."""

    def __init__(self, builder: Value, shape: TileShape, rows: int, vectors: int) -> None:
        self.b, self.shape, self.rows, self.vectors = builder, shape, rows, vectors
        self.vector = ir.VectorType(_FLOAT, shape.lanes)
        self.lanes = ir.VectorType(_BIT, shape.lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * shape.lanes)

    def emit(self, task: Task) -> None:
        full = self.b.icmp_signed(">=", task.channels, _word(self.vectors * self.shape.lanes))
        masks = [self.mask(task.channels, v) for v in range(self.vectors)]
        sums = self.starts(task, full, masks)
        sums = self.products(task, sums)
        sums = self.finished(task, sums)
        self.either(full, lambda: self.store(task, sums, ()), lambda: self.store(task, sums, masks))

    def splat(self, scalar: Value) -> Value:
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
        place = self.b.add(address, _word(offset)) if offset else address
        return self.b.inttoptr(place, (kind or self.vector).as_pointer())

    def call(self, name: str, result: Value, arguments: Sequence[Value]) -> Value:
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
        return [self.b.add(r, _word(4 * self.shape.lanes * v)) for r in rows for v in range(self.vectors)]

    def load(self, places: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
        if not masks:
            return [self.b.load(self.pointer(p), align=4) for p in places]
        name, align = f"llvm.masked.load.v{self.shape.lanes}f32.p0", ir.Constant(_INDEX, 4)
        return [
            self.call(name, self.vector, [self.pointer(p), align, masks[i % self.vectors], self.zeros])
            for i, p in enumerate(places)
        ]

    def store(self, task: Task, sums: Sequence[Value], masks: Sequence[Value]) -> list[Value]:
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

        return self.either(self.b.icmp_signed("!=", task.added, _word(0)), added, lambda: sums)

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
        number, found = self.b.phi(_WORD), [self.b.phi(c.type) for c in carried]
        self.b.cbranch(self.b.icmp_signed("<", number, count), body, after)
        self.b.position_at_end(body)
        results = step(number, found)
        pairs = zip((number, *found), (_word(0), *carried), (self.b.add(number, _word(1)), *results), strict=True)
        for phi, first, following in pairs:
            phi.add_incoming(first, before)
            phi.add_incoming(following, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)
        return found

    def products(self, task: Task, sums: list[Value]) -> list[Value]:
        """The sums after all runs."""
        size = 4 * self.shape.lanes * self.shape.width
        whole = self.b.udiv(task.depth, _word(_UNROLLED))
        rest = self.b.urem(task.depth, _word(_UNROLLED))

        def run(number: Value, sums: list[Value]) -> Sequence[Value]:
            table = self.b.add(task.rows, self.b.mul(number, _word(8 * self.shape.rows)))
            rows = [self.b.load(self.pointer(table, 8 * i, _WORD)) for i in range(self.rows)]
            panel = self.b.add(task.panel, self.b.mul(number, self.b.mul(task.depth, _word(size))))
            places = [self.b.inttoptr(r, _FLOAT.as_pointer()) for r in rows]

            def turn(number: Value, sums: list[Value]) -> list[Value]:
                k = self.b.mul(number, _word(_UNROLLED))
                for i in range(_UNROLLED):
                    sums = self.step(places, panel, k, i, sums)
                return sums

            def single(number: Value, sums: list[Value]) -> list[Value]:
                return self.step(places, panel, self.b.add(number, done), 0, sums)

            sums = self.loop(whole, sums, turn)
            done = self.b.mul(whole, _word(_UNROLLED))
            return self.loop(rest, sums, single)

        return self.loop(task.runs, sums, run)

    def step(self, places: Sequence[Value], panel: Value, k: Value, i: int, sums: list[Value]) -> list[Value]:
        """The sums after element k + i of a run."""
        lanes, width = self.shape.lanes, self.shape.width
        line = self.b.inttoptr(self.b.add(panel, self.b.mul(k, _word(4 * lanes * width))), _BYTE.as_pointer())
        base = 4 * lanes * width * i

        def at(offset: int, kind: Value) -> Value:
            return self.b.bitcast(self.b.gep(line, [_word(offset)]), kind.as_pointer())

        for offset in range(0, 4 * lanes * width, 64):
            hints = [ir.Constant(_INDEX, n) for n in (0, 3, 1)]
            far = self.b.gep(line, [_word(base + offset + 4 * lanes * width * _AHEAD)])
            self.call("llvm.prefetch.p0", ir.VoidType(), [far, *hints])
        weights = [self.b.load(at(base + 4 * lanes * v, self.vector), align=4) for v in range(self.vectors)]
        found = []
        for row, place in enumerate(places):
            element = self.b.gep(self.b.gep(place, [k]), [_word(i)])
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
        kind = self.b.load(self.pointer(task.finish, 0, _WORD))
        leaks, clips = (self.b.icmp_signed("==", kind, _word(n)) for n in (LEAK, CLIP))
        return self.either(
            clips,
            lambda: self.clip(sums, self.number(task, 1), self.number(task, 2)),
            lambda: self.either(leaks, lambda: self.leak(sums, self.number(task, 3)), lambda: sums),
        )

    def clip(self, sums: Sequence[Value], low: Value, high: Value) -> list[Value]:
        raised = [self.b.select(self.b.fcmp_ordered(">", low, s), low, s) for s in sums]
        return [self.b.select(self.b.fcmp_ordered("<", high, s), high, s) for s in raised]

    def leak(self, sums: Sequence[Value], slope: Value) -> list[Value]:
        negative = [self.b.fcmp_ordered("<", s, self.zeros) for s in sums]
        return [self.b.select(n, self.b.fmul(s, slope), s) for n, s in zip(negative, sums, strict=True)]
