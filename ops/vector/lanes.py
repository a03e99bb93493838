"""Sixteen float32 at a time as values of Python, of which LLVM makes code: what vector code is written with.

LLVM cuts them where a processor has narrower registers. Imports llvmlite: modules of compiled code alone import this
one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

Value = Any
LANES = 16
WORD, INT, BYTE, FLOAT = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.FloatType()
FLOATS, INTS, BYTES, BITS = (ir.VectorType(kind, LANES) for kind in (FLOAT, INT, BYTE, ir.IntType(1)))
_ONE_BY_ONE = ir.Constant(INT, 4), ir.Constant(INT, 1)
"""Alignments: a float lies anywhere at a multiple of 4, a byte anywhere."""


def call(builder: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """A call of the intrinsic of LLVM that has this name."""
    known = builder.module.globals.get(name)
    if known is None:
        known = ir.Function(builder.module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return builder.call(known, arguments)


def splat(builder: Value, scalar: Value, kind: Value = FLOATS) -> Value:
    """A vector of one number."""
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(INTS, [0] * LANES))


class Truth:
    """Sixteen bits."""

    def __init__(self, builder: Value, value: Value) -> None:
        self.builder, self.value = builder, value

    def __or__(self, other: "Truth") -> "Truth":
        return Truth(self.builder, self.builder.or_(self.value, other.value))

    def __and__(self, other: "Truth") -> "Truth":
        return Truth(self.builder, self.builder.and_(self.value, other.value))

    def __xor__(self, other: "Truth") -> "Truth":
        return Truth(self.builder, self.builder.xor(self.value, other.value))

    def choose(self, yes: "Floats | float", no: "Floats | float") -> "Floats":
        """`yes` where it holds, else `no`."""
        a, b = (v.value if isinstance(v, Floats) else ir.Constant(FLOATS, [v] * LANES) for v in (yes, no))
        return Floats(self.builder, self.builder.select(self.value, a, b))


class Ints:
    """Sixteen int32, as the bits of floats."""

    def __init__(self, builder: Value, value: Value) -> None:
        self.builder, self.value = builder, value

    def _with(self, number: int) -> Value:
        return ir.Constant(INTS, [number] * LANES)

    def __add__(self, other: "Ints | int") -> "Ints":
        right = other.value if isinstance(other, Ints) else self._with(other)
        return Ints(self.builder, self.builder.add(self.value, right))

    def __sub__(self, other: "Ints | int") -> "Ints":
        right = other.value if isinstance(other, Ints) else self._with(other)
        return Ints(self.builder, self.builder.sub(self.value, right))

    def __lshift__(self, bits: int) -> "Ints":
        return Ints(self.builder, self.builder.shl(self.value, self._with(bits)))

    def __rshift__(self, bits: int) -> "Ints":
        return Ints(self.builder, self.builder.ashr(self.value, self._with(bits)))

    def __and__(self, bits: int) -> "Ints":
        return Ints(self.builder, self.builder.and_(self.value, self._with(bits)))

    def __or__(self, bits: int) -> "Ints":
        return Ints(self.builder, self.builder.or_(self.value, self._with(bits)))

    def as_bits(self) -> "Floats":
        """The floats that have these bits."""
        return Floats(self.builder, self.builder.bitcast(self.value, FLOATS))

    def as_numbers(self) -> "Floats":
        """The floats that are these numbers."""
        return Floats(self.builder, self.builder.sitofp(self.value, FLOATS))


class Floats:
    """Sixteen float32."""

    def __init__(self, builder: Value, value: Value) -> None:
        self.builder, self.value = builder, value

    def _of(self, other: "Floats | float") -> Value:
        return other.value if isinstance(other, Floats) else ir.Constant(FLOATS, [float(other)] * LANES)

    def __add__(self, other: "Floats | float") -> "Floats":
        return Floats(self.builder, self.builder.fadd(self.value, self._of(other)))

    def __sub__(self, other: "Floats | float") -> "Floats":
        return Floats(self.builder, self.builder.fsub(self.value, self._of(other)))

    def __rsub__(self, other: float) -> "Floats":
        return Floats(self.builder, self.builder.fsub(self._of(other), self.value))

    def __mul__(self, other: "Floats | float") -> "Floats":
        return Floats(self.builder, self.builder.fmul(self.value, self._of(other)))

    def __truediv__(self, other: "Floats | float") -> "Floats":
        return Floats(self.builder, self.builder.fdiv(self.value, self._of(other)))

    def __rtruediv__(self, other: float) -> "Floats":
        return Floats(self.builder, self.builder.fdiv(self._of(other), self.value))

    def __neg__(self) -> "Floats":
        return Floats(self.builder, self.builder.fneg(self.value))

    def _compared(self, how: str, other: "Floats | float", *, ordered: bool = True) -> Truth:
        compare = self.builder.fcmp_ordered if ordered else self.builder.fcmp_unordered
        return Truth(self.builder, compare(how, self.value, self._of(other)))

    def __lt__(self, other: "Floats | float") -> Truth:
        return self._compared("<", other)

    def __le__(self, other: "Floats | float") -> Truth:
        return self._compared("<=", other)

    def __gt__(self, other: "Floats | float") -> Truth:
        return self._compared(">", other)

    def __ge__(self, other: "Floats | float") -> Truth:
        return self._compared(">=", other)

    def equals(self, other: "Floats | float") -> Truth:
        """Where both are the same number; NaN is none."""
        return self._compared("==", other)

    def differs(self, other: "Floats | float") -> Truth:
        """Where they are not the same number; NaN differs from all."""
        return self._compared("!=", other, ordered=False)

    def is_nan(self) -> Truth:
        """Where it is no number."""
        return self._compared("uno", self, ordered=False)

    def times(self, factor: "Floats | float", term: "Floats | float") -> "Floats":
        """self * factor + term, in one instruction where there is one."""
        arguments = (self.value, self._of(factor), self._of(term))
        return Floats(self.builder, call(self.builder, "llvm.fmuladd.v16f32", FLOATS, arguments))

    def apply(self, name: str) -> "Floats":
        """An intrinsic of LLVM of one vector: sqrt, fabs, floor, ceil, rint."""
        return Floats(self.builder, call(self.builder, f"llvm.{name}.v16f32", FLOATS, (self.value,)))

    def at_least(self, least: "Floats | float") -> "Floats":
        """The larger of both; NaN in self stays, NaN in `least` does not count."""
        return (self < least).choose(least, self)

    def at_most(self, most: "Floats | float") -> "Floats":
        """The smaller of both; NaN in self stays, NaN in `most` does not count."""
        return (self > most).choose(most, self)

    def bits(self) -> Ints:
        """Their bits."""
        return Ints(self.builder, self.builder.bitcast(self.value, INTS))


def either(where: Truth, careful: Callable[[], Floats], plain: Callable[[], Floats]) -> Floats:
    """What `plain` gives; where something holds for one lane, what `careful` gives of all of them."""
    builder = where.builder
    some = builder.icmp_unsigned(
        "!=", builder.bitcast(where.value, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0)
    )
    with builder.if_else(some, likely=False) as (rare, usual):
        with rare:
            slow = careful().value
            from_rare = builder.block
        with usual:
            fast = plain().value
            from_usual = builder.block
    found = builder.phi(FLOATS)
    found.add_incoming(slow, from_rare)
    found.add_incoming(fast, from_usual)
    return Floats(builder, found)


Lanes = Value
"""Which lanes count: a vector of bits, or None for all."""


def load(builder: Value, address: Value, lanes: Lanes) -> Floats:
    """16 floats from an address; those that do not count are 0 and are not read."""
    pointer = builder.inttoptr(address, FLOATS.as_pointer())
    if lanes is None:
        return Floats(builder, builder.load(pointer, align=4, typ=FLOATS))
    zeros = ir.Constant(FLOATS, [0.0] * LANES)
    found = call(builder, "llvm.masked.load.v16f32.p0", FLOATS, (pointer, _ONE_BY_ONE[0], lanes, zeros))
    return Floats(builder, found)


def store(builder: Value, address: Value, lanes: Lanes, floats: Floats) -> None:
    """Writes those that count."""
    pointer = builder.inttoptr(address, FLOATS.as_pointer())
    if lanes is None:
        builder.store(floats.value, pointer, align=4)
        return
    arguments = (floats.value, pointer, _ONE_BY_ONE[0], lanes)
    call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), arguments)


def load_truth(builder: Value, address: Value, lanes: Lanes) -> Floats:
    """1 or 0 of 16 bytes that are not 0, or are."""
    pointer, zeros = builder.inttoptr(address, BYTES.as_pointer()), ir.Constant(BYTES, [0] * LANES)
    if lanes is None:
        found = builder.load(pointer, align=1, typ=BYTES)
    else:
        found = call(builder, "llvm.masked.load.v16i8.p0", BYTES, (pointer, _ONE_BY_ONE[1], lanes, zeros))
    return Truth(builder, builder.icmp_unsigned("!=", found, zeros)).choose(1.0, 0.0)


def store_truth(builder: Value, address: Value, lanes: Lanes, floats: Floats) -> None:
    """Writes a byte for each: 0 of 0, else 1."""
    pointer = builder.inttoptr(address, BYTES.as_pointer())
    found = builder.zext(floats.differs(0.0).value, BYTES)
    if lanes is None:
        builder.store(found, pointer, align=1)
        return
    call(builder, "llvm.masked.store.v16i8.p0", ir.VoidType(), (found, pointer, _ONE_BY_ONE[1], lanes))


def first_lanes(builder: Value, count: Value) -> Lanes:
    """The first `count` (a word, at most 16) lanes."""
    numbers = ir.Constant(INTS, list(range(LANES)))
    return builder.icmp_unsigned("<", numbers, splat(builder, builder.trunc(count, INT), INTS))


Carried = list[Value]
Body = Callable[[Value, Lanes, Carried], Carried]
"""Code for the 16 elements from a number on (a word): f(number, lanes, carried values) -> what they are behind it."""


def _counted(builder: Value, last: Value, started: Carried, body: Callable[[Value, Carried], Carried]) -> Carried:
    """The loop `for i in range(0, last, 16)` with values that go from one turn to the next."""
    before, check = builder.block, builder.append_basic_block("check")
    inside, behind = builder.append_basic_block("inside"), builder.append_basic_block("behind")
    builder.branch(check)
    builder.position_at_end(check)
    number, carried = builder.phi(WORD), [builder.phi(v.type) for v in started]
    builder.cbranch(builder.icmp_signed("<", number, last), inside, behind)
    builder.position_at_end(inside)
    ended = body(number, carried)
    following = builder.add(number, ir.Constant(WORD, LANES))
    for phi, begin, end in zip((number, *carried), (ir.Constant(WORD, 0), *started), (following, *ended), strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, builder.block)
    builder.branch(check)
    builder.position_at_end(behind)
    return carried


def each_vector(builder: Value, count: Value, started: Carried, body: Body) -> Carried:
    """Code for `count` elements, 16 at a time, and then for those that are left."""
    full = builder.and_(count, ir.Constant(WORD, -LANES))
    zero = ir.Constant(WORD, 0)
    carried = _counted(builder, full, started, lambda i, c: body(i, None, c))
    left = builder.sub(count, full)
    before, rest, behind = builder.block, builder.append_basic_block("rest"), builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", left, zero), rest, behind)
    builder.position_at_end(rest)
    ended = body(full, first_lanes(builder, left), carried)
    inside = builder.block
    builder.branch(behind)
    builder.position_at_end(behind)
    joined = []
    for whole, end in zip(carried, ended, strict=True):
        phi = builder.phi(whole.type)
        phi.add_incoming(whole, before)
        phi.add_incoming(end, inside)
        joined.append(phi)
    return joined
