"""LLVM code for sliding windows over channels-last pixels: 16 channels of some output pixels, their sums in registers.

    channels 16 b ... 16 b + 15 of a row of x     p0  p1  p2  p3  p4  p5  p6  p7 ...     one vector each
    taps along the row, weights of a tap          w0  w1  w2
    sums of 4 pixels, stride 1                    s0 = p0 w0 + p1 w1 + p2 w2
                                                  s1 =         p1 w0 + p2 w1 + p3 w2
                                                  ...

Where the number of taps is a constant (`Row`), all columns of a row are loaded once and the taps are written out;
columns beside the row are no memory, but zeros (of a maximum: -infinity). Else the taps are a loop over those inside.
Imports llvmlite: only modules of compiled code load it. Vectors are 16 floats on every processor; LLVM cuts them into
what there is. Addresses and hops are words of 64 bits, in bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from attrs import frozen
from llvmlite import ir  # type: ignore[import-untyped]

from allocator.machine_code.instructions import has
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
    of the next one, and from output to output. repeat, blocks: how many such tiles follow each other along the row, and
    how many blocks of channels each has. pixels: those of a tile to write; begin, end: its columns inside the row, the
    first tap of the first pixel is column 0; only emitters of a `Row` that are not full read these.

    Depthwise convolution alone reads the others. weights: the address of those of the first tap, with their own hops.
    bias, added: addresses; added is 0 for nothing, added_hop too; added_hop: bytes from pixel to pixel. first, many:
    the number of the first output, and how many outputs read one channel; where that is not 1, x is the address of
    channel 0.
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
    repeat: Value
    blocks: Value
    pixels: Value
    begin: Value
    end: Value
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
    """Windows along a row with so many taps side by side; windows are `stride` pixels apart."""

    taps: int
    stride: int

    def columns(self, pixels: int) -> int:
        """Returns the columns that windows of so many pixels read."""
        return (pixels - 1) * self.stride + self.taps

    def windows_of(self, column: int, pixels: int) -> Iterator[tuple[int, int]]:
        """Yields the pixels whose windows read a column, each with the number of its tap there."""
        for pixel in range(pixels):
            if 0 <= column - pixel * self.stride < self.taps:
                yield pixel, column - pixel * self.stride


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


@contextmanager
def tiles(builder: Value, window: Window, pixels: int) -> Iterator[Window]:
    """Puts the code inside `with` into loops over the tiles along a row and their blocks of channels; yields each."""
    with counting(builder, window.repeat) as number:
        first = builder.mul(number, word(pixels))
        x, y = advance(builder, window.x, first, window.x_hop), advance(builder, window.y, first, window.y_hop)
        added = advance(builder, window.added, first, window.added_hop)
        with counting(builder, window.blocks) as block:
            shift = builder.mul(block, word(4 * LANES))
            moved = [builder.add(place, shift) for place in (x, y, window.weights, window.bias)]
            beside = builder.add(added, builder.mul(shift, builder.zext(_any(builder, window.added), WORD)))
            yield window._replace(x=moved[0], y=moved[1], weights=moved[2], bias=moved[3], added=beside)


def _any(builder: Value, address: Value) -> Value:
    """Returns whether there is an address."""
    return builder.icmp_signed("!=", address, word(0))


class Lanes:
    """Loads and stores of the channels of a block: all 16 of all pixels, or those that are there."""

    def __init__(self, builder: Value, window: Window, full: bool) -> None:
        self.builder, self.window = builder, window
        self.mask = None if full else first_lanes(builder, window.lanes)

    def load(self, address: Value) -> Value:
        """Returns the channels of a block at an address; zeros where there is no channel."""
        return load(self.builder, address, FLOATS, self.mask)

    def pixel(self, address: Value) -> Value:
        """Returns what the outputs of a block read of a pixel."""
        return self.load(address)

    def columns(self, count: int) -> list[Value]:
        """Returns the masks of so many columns of a row: the channels, where the column is inside."""
        b, window = self.builder, self.window
        if self.mask is None:
            return [None] * count
        inside = (
            b.and_(b.icmp_signed("<=", window.begin, word(c)), b.icmp_signed("<", word(c), window.end))
            for c in range(count)
        )
        return [b.and_(self.mask, splat(b, each)) for each in inside]

    def written(self, pixel: int) -> Value:
        """Returns the mask of a pixel of y: the channels, where the pixel is one of the tile."""
        if self.mask is None:
            return None
        some = self.builder.icmp_signed("<", word(pixel), self.window.pixels)
        return self.builder.and_(self.mask, splat(self.builder, some))

    def store(self, values: Sequence[Value]) -> None:
        """Writes the outputs of the pixels."""
        for p, value in enumerate(values):
            place = address_of(self.builder, self.window.y, self.window.y_hop, p)
            if self.mask is None or has("avx512f"):
                store(self.builder, place, value, self.written(p))
            else:
                self._store_some(p, place, value)

    def _store_some(self, pixel: int, place: Value, value: Value) -> None:
        """Writes the lanes of a pixel, if it is one of the tile; all of them without a mask, which takes AVX2 long."""
        b, window = self.builder, self.window
        inside = b.icmp_signed("<", word(pixel), window.pixels)
        whole = b.icmp_signed("==", window.lanes, word(LANES))
        with b.if_then(inside), b.if_else(whole) as (full, some):
            with full:
                store(b, place, value)
            with some:
                store(b, place, value, self.mask)


class Spread(Lanes):
    """Lanes where `many` outputs read each channel of a pixel, and the first lane is output `first`."""

    def __init__(self, builder: Value, window: Window) -> None:
        super().__init__(builder, window, full=False)
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


@frozen
class Fold:
    """What becomes of the elements of a window: `join` of the start and one after the other.

    `outside` stands for an element of a `Row` beside the row of x.
    """

    join: Join
    outside: Value = ZEROS

    def all_taps(self, lanes: Lanes, starts: Sequence[Value], row_of: Row | None = None) -> list[Value]:
        """Returns the results of the pixels whose starts are given.

        Taps along a row of a constant length are written out, and each element of the row is read once.
        """
        builder, window = lanes.builder, lanes.window
        sums = variables(builder, starts)
        masks = lanes.columns(row_of.columns(len(sums))) if row_of else []
        with counting(builder, window.taps_z) as z:
            plane = advance(builder, window.x, window.hop_z, z)
            with counting(builder, window.taps_y) as y:
                row = advance(builder, plane, window.hop_y, y)
                if row_of is None:
                    with counting(builder, window.taps_x) as x:
                        place = advance(builder, row, window.hop_x, x)
                        pixels = [lanes.pixel(address_of(builder, place, window.x_hop, p)) for p in range(len(sums))]
                        _join_pixels(builder, sums, pixels, (z, y, x), self.join)
                else:
                    places = [address_of(builder, row, window.hop_x, c) for c in range(len(masks))]
                    pixels = [
                        load(builder, place, FLOATS, mask, otherwise=self.outside)
                        for place, mask in zip(places, masks, strict=True)
                    ]
                    for column, pixel in enumerate(pixels):
                        for p, tap in row_of.windows_of(column, len(sums)):
                            _join_pixels(builder, sums[p : p + 1], [pixel], (z, y, word(tap)), self.join)
        return [builder.load(place, typ=FLOATS) for place in sums]


def maxima(pixels: int, full: bool, row_of: Row | None = None) -> Emitter:
    """Returns the emitter of the maxima of windows; NaN where one is in the window, -infinity of an empty one."""

    def emit(builder: Value, window: Window, _: Finish) -> None:
        fold = Fold(lambda largest, pixel, _: larger_or_nan(builder, largest, pixel), LEAST)
        with tiles(builder, window, pixels) as tile:
            lanes = Lanes(builder, tile, full)
            lanes.store(fold.all_taps(lanes, [LEAST] * pixels, row_of))

    return emit


def larger_or_nan(builder: Value, largest: Value, element: Value) -> Value:
    """Returns the element where it is larger, or NaN."""
    better = builder.fcmp_ordered(">", element, largest)
    return builder.select(builder.or_(better, builder.fcmp_unordered("uno", element, element)), element, largest)


def means(pixels: int, full: bool) -> Emitter:
    """Returns the emitter of the sums of windows, each divided by the count of the finish."""

    def emit(builder: Value, window: Window, finish: Finish) -> None:
        fold, count = Fold(lambda total, pixel, _: builder.fadd(total, pixel)), splat_float(builder, finish.count)
        with tiles(builder, window, pixels) as tile:
            lanes = Lanes(builder, tile, full)
            totals = fold.all_taps(lanes, [ZEROS] * pixels)
            lanes.store([builder.fdiv(total, count) for total in totals])

    return emit


def products(pixels: int, full: bool, spread: bool = False, row_of: Row | None = None) -> Emitter:
    """Returns the emitter of depthwise convolution; `spread`: several outputs read one channel.

    In the end what is below 0 is multiplied by the slope, then all is held between the bounds; NaN stays NaN.
    """

    def emit(builder: Value, window: Window, finish: Finish) -> None:
        limits = [splat_float(builder, n) for n in (finish.low, finish.high, finish.slope)]
        with tiles(builder, window, pixels) as tile:
            lanes = Spread(builder, tile) if spread else Lanes(builder, tile, full)
            fold = Fold(partial(_add_product, lanes))
            sums = _add_beside(lanes, fold.all_taps(lanes, [lanes.load(tile.bias)] * pixels, row_of))
            lanes.store([activated(builder, total, limits) for total in sums])

    return emit


def _add_product(lanes: Lanes, total: Value, pixel: Value, tap: Sequence[Value]) -> Value:
    """Returns the sum with an element of x times the weight of its tap."""
    b, window = lanes.builder, lanes.window
    hops = window.weights_hop_z, window.weights_hop_y, window.weights_hop_x
    steps = [b.mul(hop, t) for hop, t in zip(hops, tap, strict=True)]
    place = b.add(b.add(window.weights, steps[0]), b.add(steps[1], steps[2]))
    return fused(b, pixel, lanes.load(place), total)


def _add_beside(lanes: Lanes, sums: Sequence[Value]) -> list[Value]:
    """Returns the sums with the pixels of the tensor that is added, if there is one."""
    b, window = lanes.builder, lanes.window
    places = variables(b, sums)
    with b.if_then(_any(b, window.added)):
        for p, place in enumerate(places):
            address = address_of(b, window.added, window.added_hop, p)
            other = load(b, address, FLOATS, lanes.written(p))
            b.store(b.fadd(b.load(place, typ=FLOATS), other), place)
    return [b.load(place, typ=FLOATS) for place in places]


def activated(builder: Value, value: Value, limits: Sequence[Value]) -> Value:
    """Returns the value after the activation of low, high and slope, each a vector."""
    low, high, slope = limits
    value = builder.select(builder.fcmp_ordered("<", value, ZEROS), builder.fmul(value, slope), value)
    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    return builder.select(builder.fcmp_ordered(">", value, high), high, value)
