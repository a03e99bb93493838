"""LLVM code for the tile that products of codes are made of: rows of uint8 times a panel of int8, in int32.

As `vector_tile`, with four codes where that has one float32: `products` leaves the sums of a tile in memory, `finish`
makes one vector of results of them. Written for AVX-512 with VNNI, whose one instruction multiplies four pairs of bytes
in each of 16 lanes and adds them up; sums wrap around, nothing saturates in between. Imports llvmlite: only modules of
compiled code load it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

Value = Any
ROWS, LANES, WIDTH = 14, 16, 2
"""Pixels of a tile; int32 of a vector; vectors of outputs."""
_WORD, _INDEX, _BIT, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.IntType(8)
_SUMS, _REALS = ir.VectorType(_INDEX, LANES), ir.VectorType(ir.FloatType(), LANES)
_LANES, _CODES = ir.VectorType(_BIT, LANES), ir.VectorType(_BYTE, LANES)
_QUADS = ir.VectorType(_BYTE, 4 * LANES)
_LINE = 4 * LANES * WIDTH
"""Bytes of weights of a step: four inputs of 32 outputs."""
_UNROLLED, _AHEAD = 4, 24
_TYPED = binding.llvm_version_info[0] >= 22
"""Since then LLVM's instruction takes bytes as bytes."""


def _word(number: int) -> Value:
    return ir.Constant(_WORD, number)


def pointer(b: Value, address: Value, offset: int, kind: Value) -> Value:
    """The pointer to what lies so many bytes behind an address."""
    return b.inttoptr(b.add(address, _word(offset)) if offset else address, kind.as_pointer())


def call(b: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """A call of the intrinsic of LLVM that has this name."""
    known = b.module.globals.get(name)
    if known is None:
        known = ir.Function(b.module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return b.call(known, arguments)


def splat(b: Value, scalar: Value) -> Value:
    """The scalar in each of 16 lanes."""
    kind = ir.VectorType(scalar.type, LANES)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_INDEX, 0))
    return b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), ir.Constant(_SUMS, [0] * LANES))


def loop(
    b: Value, count: Value, carried: Sequence[Value], step: Callable[[Value, list[Value]], Sequence[Value]]
) -> list[Value]:
    """The values after `count` (maybe 0) steps: each is given its number and the values before it."""
    before, head, body, after = b.block, *(b.append_basic_block(n) for n in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    number, found = b.phi(_WORD), [b.phi(c.type) for c in carried]
    b.cbranch(b.icmp_signed("<", number, count), body, after)
    b.position_at_end(body)
    results = step(number, found)
    pairs = zip((number, *found), (_word(0), *carried), (b.add(number, _word(1)), *results), strict=True)
    for phi, first, following in pairs:
        phi.add_incoming(first, before)
        phi.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(after)
    return found


def _step(b: Value, places: Sequence[Value], line: Value, i: int, sums: Sequence[Value]) -> list[Value]:
    """The sums after four more inputs, number i behind the places and the line."""
    vectors = len(sums) // len(places)
    for v in range(WIDTH):
        hints = [ir.Constant(_INDEX, n) for n in (0, 3, 1)]
        far = b.gep(line, [_word(_LINE * (i + _AHEAD) + 64 * v)])
        call(b, "llvm.prefetch.p0", ir.VoidType(), [far, *hints])
    kind = _QUADS if _TYPED else _SUMS
    weights = []
    for v in range(vectors):
        place = b.bitcast(b.gep(line, [_word(_LINE * i + 64 * v)]), kind.as_pointer())
        weights.append(b.load(place, align=4))
    found = []
    for row, place in enumerate(places):
        four = b.load(b.bitcast(b.gep(place, [_word(4 * i)]), _INDEX.as_pointer()), align=1)
        pixel = splat(b, four)
        pixel = b.bitcast(pixel, kind) if _TYPED else pixel
        for v, weight in enumerate(weights):
            name = "llvm.x86.avx512.vpdpbusd.512"
            found.append(call(b, name, _SUMS, [sums[row * vectors + v], pixel, weight]))
    return found


def _emit(b: Value, rows: int, vectors: int, words: Sequence[Value]) -> None:
    """The sums of a tile of so many rows and vectors."""
    table, runs, depth, panel, start, target = words
    first = [b.load(pointer(b, start, 64 * v, _SUMS), align=4) for v in range(vectors)]
    whole, rest = b.udiv(depth, _word(_UNROLLED)), b.urem(depth, _word(_UNROLLED))

    def run(number: Value, sums: list[Value]) -> Sequence[Value]:
        place = b.add(table, b.mul(number, _word(8 * ROWS)))
        starts = [b.load(pointer(b, place, 8 * i, _WORD)) for i in range(rows)]
        bases = [b.inttoptr(s, _BYTE.as_pointer()) for s in starts]
        line = pointer(b, b.add(panel, b.mul(number, b.mul(depth, _word(_LINE)))), 0, _BYTE)

        def turn(number: Value, sums: list[Value]) -> Sequence[Value]:
            here = [b.gep(p, [b.mul(number, _word(4 * _UNROLLED))]) for p in bases]
            there = b.gep(line, [b.mul(number, _word(_LINE * _UNROLLED))])
            for i in range(_UNROLLED):
                sums = _step(b, here, there, i, sums)
            return sums

        def single(number: Value, sums: list[Value]) -> Sequence[Value]:
            k = b.add(number, b.mul(whole, _word(_UNROLLED)))
            here = [b.gep(p, [b.mul(k, _word(4))]) for p in bases]
            return _step(b, here, b.gep(line, [b.mul(k, _word(_LINE))]), 0, sums)

        return loop(b, rest, loop(b, whole, sums, turn), single)

    for i, total in enumerate(loop(b, runs, first * rows, run)):
        row, v = divmod(i, vectors)
        b.store(total, pointer(b, target, _LINE * row + 64 * v, _SUMS), align=4)


def _function(module: Value, rows: int, vectors: int) -> Value:
    """The function of a tile of so many rows and vectors; written once a module."""
    name = f"arenaplan_codes_{rows}_{vectors}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WORD] * 6), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit(builder, rows, vectors, function.args)
    builder.ret_void()
    return function


def _products_type(_: Any, words: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        height, narrow, *rest = (builder.extract_value(values[0], i) for i in range(len(signature.args[0])))
        after = builder.append_basic_block("after")
        switch = builder.switch(builder.add(builder.mul(height, _word(2)), narrow), after)
        for rows in range(1, ROWS + 1):
            for vectors in (WIDTH, 1):
                block = builder.append_basic_block("tile")
                switch.add_case(_word(2 * rows + int(vectors == 1)), block)
                with builder.goto_block(block):
                    builder.call(_function(builder.module, rows, vectors), rest)
                    builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(words), generate


products: Any = intrinsic(_products_type)
"""products((height, narrow, rows, runs, depth, panel, start, sums)): sums (height, 32) of a tile, all int32.

`rows`: runs x ROWS addresses of runs of 4 * depth uint8, the first `height` of each are read; `panel` (runs, depth, 32,
4) int8; `start` (32,) int32; where `narrow` is 1, instead of 0, only the first 16 of 32 are computed.
"""


class _Finish:
    """Writes the code of the way from 16 sums to results."""

    def __init__(self, builder: Value, numbers: Sequence[Value], lanes: Value) -> None:
        self.b = builder
        self.zero, self.low, self.high, self.own_zero, self.own_factor, self.more_zero, self.more_factor = (
            splat(builder, builder.fptrunc(n, ir.FloatType())) for n in numbers
        )
        numbering = ir.Constant(_SUMS, list(range(LANES)))
        self.lanes = builder.icmp_signed("<", numbering, splat(builder, builder.trunc(lanes, _INDEX)))

    def rounded(self, real: Value, zero: Value, low: Value, high: Value) -> Value:
        """round(real) + zero between bounds; NaN becomes the lower one."""
        b = self.b
        moved = b.fadd(call(b, "llvm.roundeven.v16f32", _REALS, [real]), zero)
        raised = b.select(b.fcmp_ordered(">", moved, low), moved, low)
        return b.select(b.fcmp_ordered("<", raised, high), raised, high)

    def added(self, real: Value, codes: Value, flip: Value) -> Value:
        """What the convolution gives in codes of its own, and those at an address, in steps of y."""
        b = self.b
        least, most = (ir.Constant(_REALS, [n] * LANES) for n in (0.0, 255.0))
        own = b.fsub(self.rounded(real, self.own_zero, least, most), self.own_zero)
        arguments = [
            pointer(b, codes, 0, _CODES),
            ir.Constant(_INDEX, 1),
            self.lanes,
            ir.Constant(_CODES, [0] * LANES),
        ]
        found = call(b, "llvm.masked.load.v16i8.p0", _CODES, arguments)
        wide = b.xor(b.zext(found, _SUMS), splat(b, b.trunc(flip, _INDEX)))
        more = b.fsub(b.sitofp(wide, _REALS), self.more_zero)
        return b.fadd(b.fmul(own, self.own_factor), b.fmul(more, self.more_factor))

    def real(self, sums: Value, factor: Value) -> Value:
        """The sums at an address times the factors at another."""
        b = self.b
        found = b.load(pointer(b, sums, 0, _SUMS), align=4)
        return b.fmul(b.sitofp(found, _REALS), b.load(pointer(b, factor, 0, _REALS), align=4))

    def codes(self, real: Value, target: Value) -> None:
        """Writes them as bytes."""
        b = self.b
        whole = b.trunc(b.fptosi(self.rounded(real, self.zero, self.low, self.high), _SUMS), _CODES)
        arguments = [whole, pointer(b, target, 0, _CODES), ir.Constant(_INDEX, 1), self.lanes]
        call(b, "llvm.masked.store.v16i8.p0", ir.VoidType(), arguments)

    def integers(self, sums: Value, target: Value) -> None:
        """Writes the sums at an address as they are."""
        b = self.b
        found = b.load(pointer(b, sums, 0, _SUMS), align=4)
        arguments = [found, pointer(b, target, 0, _SUMS), ir.Constant(_INDEX, 4), self.lanes]
        call(b, "llvm.masked.store.v16i32.p0", ir.VoidType(), arguments)

    def floats(self, real: Value, target: Value) -> None:
        """Writes them as float32 between bounds; NaN stays NaN."""
        b = self.b
        raised = b.select(b.fcmp_ordered("<", real, self.low), self.low, real)
        held = b.select(b.fcmp_ordered(">", raised, self.high), self.high, raised)
        arguments = [held, pointer(b, target, 0, _REALS), ir.Constant(_INDEX, 4), self.lanes]
        call(b, "llvm.masked.store.v16f32.p0", ir.VoidType(), arguments)


def _finish_type(kind: str) -> Any:
    def typed(_: Any, words: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given, reals = (
                [builder.extract_value(v, i) for i in range(len(t))]
                for t, v in zip(signature.args, values, strict=True)
            )
            sums, factor, target, lanes, codes, flip = given
            finish = _Finish(builder, reals, lanes)
            if kind == "sums":
                finish.integers(sums, target)
                return context.get_dummy_value()
            real = finish.real(sums, factor)
            if kind == "added":
                real = finish.added(real, codes, flip)
            (finish.floats if kind == "floats" else finish.codes)(real, target)
            return context.get_dummy_value()

        return types.void(words, numbers), generate

    return intrinsic(typed)


finish_codes, finish_added, finish_floats, finish_sums = map(_finish_type, ("codes", "added", "floats", "sums"))
"""f((sums, factor, target, lanes, codes, flip), (zero, low, high, own_zero, own_factor, more_zero, more_factor)).

Writes the first `lanes` of 16 results to `target`; the numbers are doubles. `codes` is where the codes to be added lie,
with the bits `flip` (128 for int8, whose zero is then counted up by as many) turned around.
"""
