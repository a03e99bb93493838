"""LLVM code for what surrounds the tiles of a product: packing, smooth activations, products with very few rows.

Imports llvmlite: ops.products.code alone loads it. Addresses, counts and pitches are words, in bytes where they are
distances.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit.builder import (
    BITS,
    FLOAT,
    FLOATS,
    INT,
    LANES,
    Value,
    advance,
    constant,
    counting,
    first_lanes,
    shuffled,
    splat,
    splat_float,
    transpose,
    word,
)
from ops.vector.lanes import Carried, Floats, Lanes, each_vector, load, store

Words = Sequence[Value]
DOTS, STREAMS = 4, 8
"""Rows of weights that one pass multiplies by a vector, and rows that one pass adds up."""


def _after(builder: Value, address: Value, number: Value) -> Value:
    """Returns the address of float `number` behind an address."""
    return advance(builder, address, number, 4)


def _splat(builder: Value, double: Value) -> Floats:
    return Floats(builder, splat_float(builder, double))


def leak(x: Floats, slope: Floats) -> Floats:
    """Returns x where x > 0, else slope * x."""
    return (x < 0.0).choose(x * slope, x)


def smooth(function: Callable[[Floats], Floats]) -> Callable[..., None]:
    """Returns a function that writes the code of f(y, count).

    It replaces each of the `count` floats by what `function` gives for it.
    """

    def emit(builder: Value, words: Words, _: Words) -> None:
        y, count = words

        def body(number: Value, lanes: Lanes, carried: Carried) -> Carried:
            place = _after(builder, y, number)
            store(builder, place, lanes, function(load(builder, place, lanes)))
            return carried

        each_vector(builder, count, [], body)

    return emit


def clip(builder: Value, words: Words, numbers: Words) -> None:
    """Writes the code of f(y, count; low, high), which holds floats between the bounds; NaN stays NaN."""
    low, high = (_splat(builder, n) for n in numbers)
    smooth(lambda x: x.at_least(low).at_most(high))(builder, words, ())


def slope(builder: Value, words: Words, numbers: Words) -> None:
    """Writes the code of f(y, count; slope), which multiplies negative floats by the slope."""
    factor = _splat(builder, numbers[0])
    smooth(lambda x: leak(x, factor))(builder, words, ())


def pack_rows(builder: Value, words: Words, numbers: Words) -> None:
    """Writes the code of f(b, pitch, depth, channels, panel, width; factor): panel[k] = factor * b[k, :channels].

    The rest of a row of the panel gets zeros. Up to 15 floats behind the panel are written, too.
    """
    b, pitch, depth, channels, panel, width = words
    factor = _splat(builder, numbers[0])

    with counting(builder, depth) as k:
        source, target = builder.add(b, builder.mul(k, pitch)), builder.add(panel, builder.mul(k, width))

        def body(number: Value, lanes: Lanes, carried: Carried) -> Carried:
            scaled = load(builder, _after(builder, source, number), lanes) * factor
            store(builder, _after(builder, target, number), None, scaled)
            return carried

        each_vector(builder, channels, [], body)


def pack_columns(builder: Value, words: Words, numbers: Words) -> None:
    """Writes the code of the same function for panel[k] = factor * b[:channels, k]; up to 15 more rows are written."""
    b, pitch, depth, channels, panel, width = words
    factor = _splat(builder, numbers[0])

    def square(first: Value, k: Value) -> None:
        left = first_lanes(builder, _least(builder, builder.sub(depth, k)))
        rows = []
        for i in range(LANES):
            n = builder.add(first, word(i))
            lanes = builder.select(builder.icmp_signed("<", n, channels), left, _none())
            rows.append(load(builder, _after(builder, builder.add(b, builder.mul(n, pitch)), k), lanes).value)
        target = _after(builder, builder.add(panel, builder.mul(k, width)), first)
        for i, value in enumerate(transpose(builder, rows)):
            place = builder.add(target, builder.mul(width, word(i)))
            store(builder, place, None, Floats(builder, value) * factor)

    with counting(builder, channels, LANES) as first, counting(builder, depth, LANES) as k:
        square(first, k)


def _least(builder: Value, count: Value) -> Value:
    return builder.select(builder.icmp_signed("<", count, word(LANES)), count, word(LANES))


def _none() -> Value:
    return constant(BITS, 0)


def _element(builder: Value, address: Value) -> Value:
    return builder.load(builder.inttoptr(address, FLOAT.as_pointer()), align=4, typ=FLOAT)


def streams(rows: int) -> Callable[..., None]:
    """Returns a function that writes the code of f(a, b, pitch, y, count; factor).

    y[:count] += sum of factor * a[i] * b[i, :count] over i < rows.
    """

    def emit(builder: Value, words: Words, numbers: Words) -> None:
        a, b, pitch, y, count = words
        factor = builder.fptrunc(numbers[0], FLOAT)
        scalars = [_element(builder, builder.add(a, word(4 * i))) for i in range(rows)]
        factors = [Floats(builder, splat(builder, builder.fmul(s, factor))) for s in scalars]
        places = [b]
        for _ in range(rows - 1):
            places.append(builder.add(places[-1], pitch))

        def body(number: Value, lanes: Lanes, carried: Carried) -> Carried:
            total = load(builder, _after(builder, y, number), lanes)
            for scale, place in zip(factors, places, strict=True):
                total = load(builder, _after(builder, place, number), lanes).times(scale, total)
            store(builder, _after(builder, y, number), lanes, total)
            return carried

        each_vector(builder, count, [], body)

    return emit


def dots(columns: int) -> Callable[..., None]:
    """Returns a function that writes the code of f(a, b, pitch, depth, y; factor).

    y[i] += factor * (a . b[i]) for i < columns.
    """

    def emit(builder: Value, words: Words, numbers: Words) -> None:
        a, b, pitch, depth, y = words
        factor = builder.fptrunc(numbers[0], FLOAT)
        places = [b]
        for _ in range(columns - 1):
            places.append(builder.add(places[-1], pitch))

        def body(number: Value, lanes: Lanes, sums: Carried) -> Carried:
            left = load(builder, _after(builder, a, number), lanes)
            rights = [load(builder, _after(builder, p, number), lanes) for p in places]
            return [r.times(left, Floats(builder, s)).value for r, s in zip(rights, sums, strict=True)]

        zeros = constant(FLOATS, 0.0)
        for i, total in enumerate(each_vector(builder, depth, [zeros] * columns, body)):
            pointer = builder.inttoptr(builder.add(y, word(4 * i)), FLOAT.as_pointer())
            before = builder.load(pointer, align=4, typ=FLOAT)
            result = builder.fadd(before, builder.fmul(factor, _sum(builder, total)))
            builder.store(result, pointer, align=4)

    return emit


def _sum(builder: Value, vector: Value) -> Value:
    """Returns the sum of 16 lanes: halves are added until one lane is left."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        low, high = (shuffled(range(start, start + lanes)) for start in (0, lanes))
        vector = builder.fadd(*(builder.shuffle_vector(vector, vector, order) for order in (low, high)))
    return builder.extract_element(vector, ir.Constant(INT, 0))
