"""LLVM code on 16 floats at a time (AVX-512) that numba's Python cannot say: masked copies, and a tile of a product.

Imports llvmlite: ops.convolution.packed_code alone loads it, on first use. A `Value` is one of llvmlite's. Addresses
are words of 64 bits, in bytes; masks of lanes are words of which the lowest 16 bits count.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.convolution.packed_tiles import PIXELS

Value = Any
LANES, WIDTH = 16, 2
"""Floats of one vector, and vectors of output channels of one tile."""
_AHEAD = 48
"""Steps along the depth that weights are asked for before they are used: they come from far, and once."""
_WORD, _INDEX, _FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
_VECTOR, _MASK = ir.VectorType(_FLOAT, LANES), ir.VectorType(ir.IntType(1), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)
_ALIGNMENT = ir.Constant(_INDEX, 4)


def _word(number: int) -> Value:
    return ir.Constant(_WORD, number)


def _indices(numbers: Sequence[int]) -> Value:
    return ir.Constant(ir.VectorType(_INDEX, len(numbers)), list(numbers))


def _call(builder: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """Writes a call of the intrinsic of LLVM that has this name, and returns its result."""
    declared = builder.module.globals.get(name)
    if declared is None:
        declared = ir.Function(builder.module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return builder.call(declared, arguments)


def _pointer(builder: Value, address: Value, offset: int, kind: Value) -> Value:
    return builder.inttoptr(builder.add(address, _word(offset)), kind.as_pointer())


def _splat(builder: Value, scalar: Value, kind: Value) -> Value:
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _indices([0] * LANES))


def _mask(builder: Value, bits: Value) -> Value:
    return builder.bitcast(builder.trunc(bits, ir.IntType(LANES)), _MASK)


def _load(builder: Value, address: Value, lanes: Value) -> Value:
    arguments = [_pointer(builder, address, 0, _VECTOR), _ALIGNMENT, lanes, _ZEROS]
    return _call(builder, "llvm.masked.load.v16f32.p0", _VECTOR, arguments)


def _store(builder: Value, address: Value, lanes: Value, value: Value) -> None:
    arguments = [value, _pointer(builder, address, 0, _VECTOR), _ALIGNMENT, lanes]
    _call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), arguments)


def copy(builder: Value, source: Value, target: Value, read: Value, written: Value) -> None:
    """Writes the lanes `written` of 16 floats at `source`; where they are not in `read`, zeros. No other is touched."""
    _store(builder, target, _mask(builder, written), _load(builder, source, _mask(builder, read)))


def halve(builder: Value, source: Value, target: Value, near: Value, far: Value, *lanes: Value) -> None:
    """Writes code that copies every second of 32 floats.

    It reads the lanes `near` of the first 16 floats and `far` of the last 16, and writes the lanes given.
    """
    (written,) = lanes
    first = _load(builder, source, _mask(builder, near))
    last = _load(builder, builder.add(source, _word(4 * LANES)), _mask(builder, far))
    value = builder.shuffle_vector(first, last, _indices([2 * i for i in range(LANES)]))
    _store(builder, target, _mask(builder, written), value)


def pick(builder: Value, source: Value, step: Value, target: Value, *lanes: Value) -> None:
    """Writes code that copies 16 floats that lie `step` bytes apart.

    `lanes` are two masks: the lanes to read and the lanes to write.
    """
    read, written = lanes
    words = ir.VectorType(_WORD, LANES)
    hops = builder.mul(_splat(builder, step, words), ir.Constant(words, list(range(LANES))))
    places = builder.add(_splat(builder, source, words), hops)
    pointers = builder.inttoptr(places, ir.VectorType(_FLOAT.as_pointer(), LANES))
    arguments = [pointers, _ALIGNMENT, _mask(builder, read), _ZEROS]
    value = _call(builder, "llvm.masked.gather.v16f32.v16p0", _VECTOR, arguments)
    _store(builder, target, _mask(builder, written), value)


def tile(pixels: int) -> Callable[..., None]:
    """Returns a function that writes the code of a tile: y = bias + panel x weights, summed over the depth.

    The tile has `pixels` of the panel's 14. The function takes a builder, words, `bounds` and `adds`. The words: panel
    (depth, 14), weights (depth, 32), bias (channels,), y (channels, pixels), each as an address; the depth (at least
    1), the bytes from a channel of y to the next, the pixels to write, the channels, the bytes from y to the array that
    is added to it where `adds` is set. At the end one bound multiplies what is below 0; two bounds hold the sums
    between them. NaN stays NaN.
    """

    def emit(builder: Value, words: Sequence[Value], bounds: Sequence[Value], adds: bool) -> None:
        panel, weights, bias, y, depth, pitch, lanes, channels, apart = words
        far = [_Rows(builder.add(y, apart), pitch, 4 * (pixels - 1))] * adds
        sums = _products(builder, _biases(builder, bias, channels) * pixels, (panel, weights, depth), far)
        limits = [_splat(builder, builder.fptrunc(bound, _FLOAT), _VECTOR) for bound in bounds]
        for v in range(WIDTH):
            rows = _transposed(builder, sums[v::WIDTH] + [_ZEROS] * (LANES - pixels))
            place = y, pitch, _mask(builder, lanes), channels
            _store_rows(builder, rows, LANES * v, place, _Finish(limits, [apart] * adds))

    return emit


class _Rows(NamedTuple):
    """The tensor added to a tile: its address, the bytes from a channel to the next, and those to the last pixel."""

    start: Value
    pitch: Value
    reach: int

    def ask(self, builder: Value, number: Value) -> None:
        """Fetches the first or the last pixel of one channel after the other."""
        channel = builder.and_(number, _word(LANES * WIDTH - 1))
        last = builder.and_(builder.udiv(number, _word(LANES * WIDTH)), _word(1))
        offset = builder.add(builder.mul(self.pitch, channel), builder.mul(last, _word(self.reach)))
        _ask(builder, _pointer(builder, builder.add(self.start, offset), 0, ir.IntType(8)))


class _Finish(NamedTuple):
    """The last step of the sums: `limits` are vectors; `apart` has the distance to the tensor that is added, if any."""

    limits: Sequence[Value]
    apart: Sequence[Value]

    def apply(self, builder: Value, row: Value, address: Value, lanes: Value) -> Value:
        """Writes what is added and the limits of a row, and returns the row as it is stored at an address."""
        for distance in self.apart:
            row = builder.fadd(row, _load(builder, builder.add(address, distance), lanes))
        if len(self.limits) == 1:
            scaled = builder.fmul(row, self.limits[0])
            return builder.select(builder.fcmp_ordered("<", row, _ZEROS), scaled, row)
        for order, limit in zip("<>", self.limits, strict=False):
            row = builder.select(builder.fcmp_ordered(order, row, limit), limit, row)
        return row


def _biases(builder: Value, bias: Value, channels: Value) -> list[Value]:
    """Returns the bias of a tile, one vector for 16 channels; lanes beyond the last channel are 0."""
    beyond = builder.shl(_word(-1), channels)
    lanes = builder.not_(beyond)
    parts = [builder.lshr(lanes, _word(LANES * v)) for v in range(WIDTH)]
    return [_load(builder, builder.add(bias, _word(4 * LANES * v)), _mask(builder, p)) for v, p in enumerate(parts)]


def _products(
    builder: Value, starts: Sequence[Value], factors: tuple[Value, Value, Value], far: Sequence[_Rows]
) -> list[Value]:
    """Writes the loop over the depth, and returns its sums.

    Sum WIDTH * i + v is starts[WIDTH * i + v] + sum over k < depth of panel[k, i] * weights[k, vector v].
    """
    panel, weights, depth = factors
    before, body, after = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("done")
    builder.branch(body)
    builder.position_at_end(body)
    k, sums = builder.phi(_WORD), [builder.phi(_VECTOR) for _ in starts]
    row, column = builder.mul(k, _word(4 * PIXELS)), builder.mul(k, _word(4 * LANES * WIDTH))
    results = _step(builder, sums, builder.add(panel, row), builder.add(weights, column))
    for rows in far:
        rows.ask(builder, k)
    following = builder.add(k, _word(1))
    for phi, first, last in zip((k, *sums), (_word(0), *starts), (following, *results), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(last, body)
    builder.cbranch(builder.icmp_signed("<", following, depth), body, after)
    builder.position_at_end(after)
    return results


def _step(builder: Value, sums: Sequence[Value], panel: Value, weights: Value) -> list[Value]:
    """Writes one step along the depth, and returns the sums after it."""
    vectors, results = [], []
    for v in range(WIDTH):
        _ask(builder, _pointer(builder, weights, 4 * LANES * (WIDTH * _AHEAD + v), ir.IntType(8)))
        vectors.append(builder.load(_pointer(builder, weights, 4 * LANES * v, _VECTOR), align=4))
    for i in range(len(sums) // WIDTH):
        pixel = _splat(builder, builder.load(_pointer(builder, panel, 4 * i, _FLOAT), align=4), _VECTOR)
        for v, vector in enumerate(vectors):
            results.append(_call(builder, "llvm.fma.v16f32", _VECTOR, [pixel, vector, sums[WIDTH * i + v]]))
    return results


def _ask(builder: Value, pointer: Value) -> None:
    """Fetches a line into the cache, to be read."""
    hints = [ir.Constant(_INDEX, n) for n in (0, 3, 1)]
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, *hints])


def _transposed(builder: Value, rows: Sequence[Value]) -> list[Value]:
    """Returns 16 vectors with rows and lanes exchanged (a transposed matrix).

    There are four perfect shuffles: together they exchange the bits of the row's number with those of the lane's.
    """
    half = LANES // 2
    orders = [_indices([start + i // 2 + LANES * (i % 2) for i in range(LANES)]) for start in (0, half)]
    results = list(rows)
    for _ in range(4):
        pairs = zip(results[:half], results[half:], strict=True)
        results = [builder.shuffle_vector(a, b, order) for a, b in pairs for order in orders]
    return results


def _store_rows(
    builder: Value, rows: Sequence[Value], first: int, place: tuple[Value, Value, Value, Value], finish: _Finish
) -> None:
    """Finishes and writes the rows of channel `first` and of the following channels, as far as they exist."""
    y, pitch, lanes, channels = place
    none = ir.Constant(_MASK, [0] * LANES)
    for channel, row in enumerate(rows, first):
        kept = builder.select(builder.icmp_signed("<", _word(channel), channels), lanes, none)
        address = builder.add(y, builder.mul(pitch, _word(channel)))
        _store(builder, address, kept, finish.apply(builder, row, address, kept))
