"""LLVM code for sliding windows over channels-last pixels: 16 channels of some output pixels, their sums in registers.

    channels 16 b ... 16 b + 15 of a row of x     p0  p1  p2  p3  p4  p5  p6  p7 ...     one vector each
    taps along the row, weights of a tap          w0  w1  w2
    sums of 4 pixels, stride 1                    s0 = p0 w0 + p1 w1 + p2 w2
                                                  s1 =         p1 w0 + p2 w1 + p3 w2
                                                  ...

Where the number of taps is a constant (`Row`), all pixels of a row are loaded once and the taps are written out; else
the taps are a loop. Imports llvmlite: only modules of compiled code load it. Vectors are 16 floats on every processor;
LLVM cuts them into what there is. Addresses and hops are words of 64 bits, in bytes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
    FLOATS,
    LANES,
    WORD,
    Value,
    advance,
    constant,
    counting,
    first_lanes,
    fused,
    gather,
    load,
    numbers,
    splat,
    splat_float,
    splat_int,
    store,
    switch,
    variables,
    word,
)

Join = Callable[[Value, Value, Sequence[Value]], Value]
"""f(sum, element of x, numbers of its tap along depth, height and width) -> sum."""
ZEROS, LEAST = constant(FLOATS, 0.0), constant(FLOATS, float("-inf"))


class Window(NamedTuple):
    """The words of a tile: `emitter` is the number of the one that runs.

    x and y: the addresses of the first tap of the first pixel, and of that pixel's output. lanes: the channels to
    write. taps and hops: counts, and bytes from tap to tap. x_hop, y_hop: bytes from the first tap of a pixel to that
    of the next one, and from output to output.

    Depthwise convolution alone reads the others. weights: the address of those of the first tap, with their own hops.
    bias, added: addresses; added is 0 for nothing; added_hop: bytes from pixel to pixel. first, many: the number of the
    first output, and how many outputs read one channel; where that is not 1, x is the address of channel 0.
    """

    emitter: Value
    x: Value
    y: Value
    lanes: Value
    taps_z: Value
    taps_y: Value
    taps_x: Value
    hop_z: Value
    hop_y: Value
    hop_x: Value
    x_hop: Value
    y_hop: Value
    weights: Value
    weights_hop_z: Value
    weights_hop_y: Value
    weights_hop_x: Value
    bias: Value
    added: Value
    added_hop: Value
    first: Value
    many: Value


class Finish(NamedTuple):
    """The numbers of a tile: the activation of a convolution, and by how many elements a mean is divided."""

    low: Value
    high: Value
    slope: Value
    count: Value


Emitter = Callable[[Value, Window, Finish], None]


class Row(NamedTuple):
    """Windows along a row whose taps all lie inside, side by side; windows are `stride` pixels apart."""

    taps: int
    stride: int


def one_of(*emitters: Emitter) -> Callable[[Value, Sequence[Value], Sequence[Value]], None]:
    """Returns the emitter of all of them; `Window.emitter` says by number which one is run."""

    def emit(builder: Value, words: Sequence[Value], finish: Sequence[Value]) -> None:
        window = Window(*words)
        cases = {i: partial(each, builder, window, Finish(*finish)) for i, each in enumerate(emitters)}
        switch(builder, window.emitter, cases)

    return emit


def address_of(builder: Value, start: Value, hop: Value, times: int) -> Value:
    """Returns the address `times` hops behind the start."""
    return advance(builder, start, hop, times) if times else start


class Lanes:
    """Loads and stores of the channels of a block: all 16, or the first ones of them."""

    def __init__(self, builder: Value, count: Value, full: bool) -> None:
        self.builder, self.mask = builder, None if full else first_lanes(builder, count)

    def load(self, address: Value) -> Value:
        """Returns the channels of a block at an address; zeros where there is no channel."""
        return load(self.builder, address, FLOATS, self.mask)

    def pixel(self, address: Value) -> Value:
        """Returns what the outputs of a block read of a pixel."""
        return self.load(address)

    def store(self, address: Value, value: Value) -> None:
        """Writes the channels of a block to an address; nothing where there is no channel."""
        store(self.builder, address, value, self.mask)


class Spread(Lanes):
    """Lanes where `many` outputs read each channel of a pixel, and the first lane is output `first`."""

    def __init__(self, builder: Value, window: Window) -> None:
        super().__init__(builder, window.lanes, full=False)
        outputs = builder.add(numbers(), splat_int(builder, window.first))
        channels = builder.udiv(outputs, splat_int(builder, window.many))
        wide = builder.zext(channels, ir.VectorType(WORD, LANES))
        self.offsets = builder.mul(wide, constant(wide.type, 4))

    def pixel(self, address: Value) -> Value:
        """Returns the channels that the lanes read, where the address is that of the pixel's first channel."""
        assert self.mask is not None
        return gather(self.builder, self.builder.add(splat(self.builder, address), self.offsets), self.mask, ZEROS)


def _join_pixels(
    builder: Value, sums: Sequence[Value], pixels: Sequence[Value], tap: Sequence[Value], join: Join
) -> None:
    """Joins one tap of each pixel to its sum."""
    for place, pixel in zip(sums, pixels, strict=False):
        builder.store(join(builder.load(place, typ=FLOATS), pixel, tap), place)


def _join(  # noqa: PLR0917 - what all kinds of windows share
    builder: Value,
    window: Window,
    starts: Sequence[Value],
    join: Join,
    lanes: Lanes,
    row_of: Row | None = None,
) -> list[Value]:
    """Returns what `join(sum, x, tap)` makes of the starts, one for each pixel, over all taps.

    Taps along a row of a constant length are written out, and each element of the row is read once.
    """
    sums = variables(builder, starts)
    with counting(builder, window.taps_z) as z:
        plane = advance(builder, window.x, window.hop_z, z)
        with counting(builder, window.taps_y) as y:
            row = advance(builder, plane, window.hop_y, y)
            if row_of is None:
                with counting(builder, window.taps_x) as x:
                    place = advance(builder, row, window.hop_x, x)
                    pixels = [lanes.pixel(address_of(builder, place, window.x_hop, p)) for p in range(len(sums))]
                    _join_pixels(builder, sums, pixels, (z, y, x), join)
            else:
                columns = (len(sums) - 1) * row_of.stride + row_of.taps
                pixels = [lanes.pixel(address_of(builder, row, window.hop_x, c)) for c in range(columns)]
                for tap in range(row_of.taps):
                    _join_pixels(builder, sums, pixels[tap :: row_of.stride], (z, y, word(tap)), join)
    return [builder.load(place, typ=FLOATS) for place in sums]


def maxima(pixels: int, full: bool, row_of: Row | None = None) -> Emitter:
    """Returns the emitter of the maxima of windows; NaN where one is in the window, -infinity of an empty one."""

    def emit(builder: Value, window: Window, _: Finish) -> None:
        lanes = Lanes(builder, window.lanes, full)

        def join(largest: Value, pixel: Value, _: Sequence[Value]) -> Value:
            return larger_or_nan(builder, largest, pixel)

        for p, largest in enumerate(_join(builder, window, [LEAST] * pixels, join, lanes, row_of)):
            lanes.store(address_of(builder, window.y, window.y_hop, p), largest)

    return emit


def larger_or_nan(builder: Value, largest: Value, element: Value) -> Value:
    """Returns the element where it is larger, or NaN."""
    better = builder.fcmp_ordered(">", element, largest)
    return builder.select(builder.or_(better, builder.fcmp_unordered("uno", element, element)), element, largest)


def means(pixels: int, full: bool) -> Emitter:
    """Returns the emitter of the sums of windows, each divided by the count of the finish."""

    def emit(builder: Value, window: Window, finish: Finish) -> None:
        lanes = Lanes(builder, window.lanes, full)

        def join(total: Value, pixel: Value, _: Sequence[Value]) -> Value:
            return builder.fadd(total, pixel)

        count = splat_float(builder, finish.count)
        for p, total in enumerate(_join(builder, window, [ZEROS] * pixels, join, lanes)):
            lanes.store(address_of(builder, window.y, window.y_hop, p), builder.fdiv(total, count))

    return emit


def products(pixels: int, full: bool, spread: bool = False, row_of: Row | None = None) -> Emitter:
    """Returns the emitter of depthwise convolution; `spread`: several outputs read one channel.

    In the end what is below 0 is multiplied by the slope, then all is held between the bounds; NaN stays NaN.
    """

    def emit(builder: Value, window: Window, finish: Finish) -> None:
        lanes = Spread(builder, window) if spread else Lanes(builder, window.lanes, full)
        hops = window.weights_hop_z, window.weights_hop_y, window.weights_hop_x

        def join(total: Value, pixel: Value, tap: Sequence[Value]) -> Value:
            steps = [builder.mul(hop, t) for hop, t in zip(hops, tap, strict=True)]
            place = builder.add(builder.add(window.weights, steps[0]), builder.add(steps[1], steps[2]))
            return fused(builder, pixel, lanes.load(place), total)

        sums = variables(builder, _join(builder, window, [lanes.load(window.bias)] * pixels, join, lanes, row_of))
        with builder.if_then(builder.icmp_signed("!=", window.added, word(0))):
            for p, place in enumerate(sums):
                other = lanes.load(address_of(builder, window.added, window.added_hop, p))
                builder.store(builder.fadd(builder.load(place, typ=FLOATS), other), place)
        limits = [splat_float(builder, n) for n in (finish.low, finish.high, finish.slope)]
        for p, place in enumerate(sums):
            value = activated(builder, builder.load(place, typ=FLOATS), limits)
            lanes.store(address_of(builder, window.y, window.y_hop, p), value)

    return emit


def activated(builder: Value, value: Value, limits: Sequence[Value]) -> Value:
    """Returns the value after the activation of low, high and slope, each a vector."""
    low, high, slope = limits
    value = builder.select(builder.fcmp_ordered("<", value, ZEROS), builder.fmul(value, slope), value)
    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    return builder.select(builder.fcmp_ordered(">", value, high), high, value)
