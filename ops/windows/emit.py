"""LLVM code for sliding windows over channels-last pixels: 16 channels of some output pixels, their sums in registers.

Imports numba: compiled modules alone load it. Vectors are 16 floats on every processor; LLVM cuts them into what
there is. Addresses and hops are words of 64 bits, in bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

Value = Any
Join = Callable[[Value, Value, Sequence[Value]], Value]
LANES, FLOAT_BYTES = 16, 4
WORD, INDEX, FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
VECTOR, MASK = ir.VectorType(FLOAT, LANES), ir.VectorType(ir.IntType(1), LANES)
ZEROS = ir.Constant(VECTOR, [0.0] * LANES)
LEAST = ir.Constant(VECTOR, [float("-inf")] * LANES)
_ALIGNMENT = ir.Constant(INDEX, 4)


class Window(NamedTuple):
    """The words of every tile.

    x and y are the addresses of the first tap of the first pixel and of that pixel's output; `lanes` are the channels
    to write; taps and hops are counts and bytes from tap to tap along depth, height and width; then the bytes from one
    pixel's first tap to the next one's, and from output to output.
    """

    x: Value
    y: Value
    lanes: Value
    taps: tuple[Value, Value, Value]
    hops: tuple[Value, Value, Value]
    x_hop: Value
    y_hop: Value

    @classmethod
    def of(cls, words: Sequence[Value]) -> "Window":
        """Out of eleven words in this order."""
        x, y, lanes, *rest = words
        return cls(x, y, lanes, tuple(rest[:3]), tuple(rest[3:6]), rest[6], rest[7])


WINDOW_WORDS = 11


class Row(NamedTuple):
    """Windows along a row whose taps all lie inside, side by side; windows are `stride` pixels apart."""

    taps: int
    stride: int


def intrinsic_of(emit: Callable[..., None]) -> Any:
    """A function for compiled code, of a tuple of words and one of floats, that becomes the LLVM code of `emit`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words, numbers = (
            [builder.extract_value(v, i) for i in range(len(t))] for t, v in zip(signature.args, values, strict=True)
        )
        emit(builder, words, numbers)
        return context.get_dummy_value()

    def typed(_: Any, words: Any, numbers: Any) -> Any:
        return types.void(words, numbers), generate

    return intrinsic(typed)


def one_of(*emitters: Callable[..., None]) -> Callable[..., None]:
    """The emitter of all of them; the first word says by number which one is run."""

    def emit(builder: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
        after = builder.append_basic_block("chosen")
        switch = builder.switch(words[0], after)
        for i, each in enumerate(emitters):
            block = builder.append_basic_block("choice")
            switch.add_case(number(i), block)
            builder.position_at_end(block)
            each(builder, words[1:], numbers)
            builder.branch(after)
        builder.position_at_end(after)

    return emit


def call(builder: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """A call of the intrinsic of LLVM that has this name."""
    known = builder.module.globals.get(name)
    if known is None:
        known = ir.Function(builder.module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return builder.call(known, arguments)


def number(value: int) -> Value:
    """A word."""
    return ir.Constant(WORD, value)


def address_of(builder: Value, start: Value, hop: Value, times: int) -> Value:
    """`times` hops behind the start."""
    return builder.add(start, builder.mul(hop, number(times))) if times else start


def splat(builder: Value, scalar: Value) -> Value:
    """A vector of one number."""
    kind = ir.VectorType(scalar.type, LANES)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES)
    )


class Lanes:
    """Loads and stores of the channels of a block: all 16, or the first ones of them."""

    def __init__(self, builder: Value, count: Value, full: bool) -> None:
        self.builder, self.full = builder, full
        if not full:
            numbers = ir.Constant(ir.VectorType(INDEX, LANES), list(range(LANES)))
            self.mask = builder.icmp_signed("<", numbers, splat(builder, builder.trunc(count, INDEX)))

    def load(self, address: Value) -> Value:
        """Zeros where there is no channel."""
        pointer = self.builder.inttoptr(address, VECTOR.as_pointer())
        if self.full:
            return self.builder.load(pointer, align=4, typ=VECTOR)
        arguments = [pointer, _ALIGNMENT, self.mask, ZEROS]
        return call(self.builder, "llvm.masked.load.v16f32.p0", VECTOR, arguments)

    def pixel(self, address: Value) -> Value:
        """What the outputs of a block read of a pixel."""
        return self.load(address)

    def store(self, address: Value, value: Value) -> None:
        """Nothing where there is no channel."""
        pointer = self.builder.inttoptr(address, VECTOR.as_pointer())
        if self.full:
            self.builder.store(value, pointer, align=4)
        else:
            arguments = [value, pointer, _ALIGNMENT, self.mask]
            call(self.builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), arguments)


class Spread(Lanes):
    """Lanes where `many` outputs read each channel of a pixel, and the first lane is output `first`."""

    def __init__(self, builder: Value, count: Value, first: Value, many: Value) -> None:
        super().__init__(builder, count, full=False)
        numbers = ir.Constant(ir.VectorType(INDEX, LANES), list(range(LANES)))
        outputs = builder.add(numbers, splat(builder, builder.trunc(first, INDEX)))
        channels = builder.udiv(outputs, splat(builder, builder.trunc(many, INDEX)))
        wide = builder.zext(channels, ir.VectorType(WORD, LANES))
        self.bytes = builder.mul(wide, ir.Constant(wide.type, [FLOAT_BYTES] * LANES))

    def pixel(self, address: Value) -> Value:
        """Gathered, as the address is that of the pixel's first channel."""
        places = self.builder.add(splat(self.builder, address), self.bytes)
        pointers = self.builder.inttoptr(places, ir.VectorType(FLOAT.as_pointer(), LANES))
        arguments = [pointers, _ALIGNMENT, self.mask, ZEROS]
        return call(self.builder, "llvm.masked.gather.v16f32.v16p0", VECTOR, arguments)


@contextmanager
def loop(builder: Value, count: Value) -> Iterator[Value]:
    """Code for each index below the count."""
    before, head = builder.block, builder.append_basic_block("head")
    body, after = builder.append_basic_block("body"), builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(WORD)
    index.add_incoming(number(0), before)
    builder.cbranch(builder.icmp_signed("<", index, count), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, number(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def rooms_of(builder: Value, starts: Sequence[Value]) -> list[Value]:
    """Variables that LLVM keeps in registers."""
    with builder.goto_entry_block():
        rooms = [builder.alloca(VECTOR) for _ in starts]
    for room, start in zip(rooms, starts, strict=True):
        builder.store(start, room)
    return rooms


def _join_pixels(
    builder: Value, rooms: Sequence[Value], pixels: Sequence[Value], tap: Sequence[Value], join: Join
) -> None:
    """One tap of each pixel."""
    for room, pixel in zip(rooms, pixels, strict=False):
        builder.store(join(builder.load(room, typ=VECTOR), pixel, tap), room)


def _join(  # noqa: PLR0917 - what all kinds of windows share
    builder: Value,
    window: Window,
    starts: Sequence[Value],
    join: Join,
    lanes: Lanes,
    row_of: Row | None = None,
) -> list[Value]:
    """What `join(sum, x, (z, y, x tap))` makes of the starts, one a pixel, over all taps.

    Taps along a row of known length are written out, each element of it is read once.
    """
    rooms = rooms_of(builder, starts)
    with loop(builder, window.taps[0]) as z:
        plane = builder.add(window.x, builder.mul(window.hops[0], z))
        with loop(builder, window.taps[1]) as y:
            row = builder.add(plane, builder.mul(window.hops[1], y))
            if row_of is None:
                with loop(builder, window.taps[2]) as x:
                    place = builder.add(row, builder.mul(window.hops[2], x))
                    pixels = [lanes.pixel(address_of(builder, place, window.x_hop, p)) for p in range(len(rooms))]
                    _join_pixels(builder, rooms, pixels, (z, y, x), join)
            else:
                columns = (len(rooms) - 1) * row_of.stride + row_of.taps
                read = [lanes.pixel(address_of(builder, row, window.hops[2], c)) for c in range(columns)]
                for tap in range(row_of.taps):
                    _join_pixels(builder, rooms, read[tap :: row_of.stride], (z, y, number(tap)), join)
    return [builder.load(room, typ=VECTOR) for room in rooms]


def maxima(pixels: int, full: bool, row_of: Row | None = None) -> Callable[..., None]:
    """The emitter of the maxima of windows; NaN where one is in the window, -infinity of an empty one."""

    def emit(builder: Value, words: Sequence[Value], _: Sequence[Value]) -> None:
        window = Window.of(words[:WINDOW_WORDS])
        lanes = Lanes(builder, window.lanes, full)

        def join(found: Value, pixel: Value, _: Sequence[Value]) -> Value:
            better = builder.fcmp_ordered(">", pixel, found)
            nan = builder.fcmp_unordered("uno", pixel, pixel)
            return builder.select(builder.or_(better, nan), pixel, found)

        for p, found in enumerate(_join(builder, window, [LEAST] * pixels, join, lanes, row_of)):
            lanes.store(address_of(builder, window.y, window.y_hop, p), found)

    return emit


def means(pixels: int, full: bool) -> Callable[..., None]:
    """The emitter of the sums of windows, each divided by the last of four numbers."""

    def emit(builder: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
        window = Window.of(words[:WINDOW_WORDS])
        lanes = Lanes(builder, window.lanes, full)

        def join(found: Value, pixel: Value, _: Sequence[Value]) -> Value:
            return builder.fadd(found, pixel)

        count = splat(builder, builder.fptrunc(numbers[3], FLOAT))
        for p, found in enumerate(_join(builder, window, [ZEROS] * pixels, join, lanes)):
            lanes.store(address_of(builder, window.y, window.y_hop, p), builder.fdiv(found, count))

    return emit


def products(pixels: int, full: bool, spread: bool = False, row_of: Row | None = None) -> Callable[..., None]:
    """The emitter of depthwise convolution. Seven words more, and three numbers.

    The address of the weights of the first tap, the bytes from tap to tap along depth, height and width, the address of
    the bias, that of what is added (0 for nothing) and the bytes from pixel to pixel of it; where it is `spread`, also
    the number of the first output and how many outputs read one channel, and x is not that of the block, but of
    channel 0. The numbers are low, high and slope: what is below 0 is multiplied by the slope, then all is held between
    the bounds; NaN stays NaN.
    """

    def emit(builder: Value, words: Sequence[Value], numbers: Sequence[Value]) -> None:
        window = Window.of(words[:WINDOW_WORDS])
        weights, *hops, bias, added, added_hop = words[WINDOW_WORDS : WINDOW_WORDS + 7]
        first, many = words[WINDOW_WORDS + 7 :]
        lanes = Spread(builder, window.lanes, first, many) if spread else Lanes(builder, window.lanes, full)

        def join(found: Value, pixel: Value, tap: Sequence[Value]) -> Value:
            steps = [builder.mul(hop, t) for hop, t in zip(hops, tap, strict=True)]
            place = builder.add(builder.add(weights, steps[0]), builder.add(steps[1], steps[2]))
            return call(builder, "llvm.fmuladd.v16f32", VECTOR, [pixel, lanes.load(place), found])

        sums = _join(builder, window, [lanes.load(bias)] * pixels, join, lanes, row_of)
        rooms = rooms_of(builder, sums)
        with builder.if_then(builder.icmp_signed("!=", added, number(0))):
            for p, room in enumerate(rooms):
                other = lanes.load(address_of(builder, added, added_hop, p))
                builder.store(builder.fadd(builder.load(room, typ=VECTOR), other), room)
        limits = [splat(builder, builder.fptrunc(n, FLOAT)) for n in numbers[:3]]
        for p, room in enumerate(rooms):
            held = hold(builder, builder.load(room, typ=VECTOR), limits)
            lanes.store(address_of(builder, window.y, window.y_hop, p), held)

    return emit


def hold(builder: Value, value: Value, limits: Sequence[Value]) -> Value:
    """The activation of low, high and slope, each a vector."""
    low, high, slope = limits
    value = builder.select(builder.fcmp_ordered("<", value, ZEROS), builder.fmul(value, slope), value)
    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    return builder.select(builder.fcmp_ordered(">", value, high), high, value)
