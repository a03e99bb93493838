"""Sixteen float32 at a time as values of Python, of which LLVM makes code: what vector code is written with.

A lane is one of the 16 places of a vector: each holds an element, and all are computed at once.

LLVM cuts them where a processor has narrower registers. Imports llvmlite: modules of compiled code alone import this
one.
"""

from collections.abc import Callable

from llvmlite import ir  # type: ignore[import-untyped]

from ops.native.emit import builder as llvm
from ops.native.emit.builder import BYTES, FLOATS, INTS, LANES, Value, constant, first_lanes, loop, word


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
        """Returns `yes` where it holds, else `no`."""
        a, b = (v.value if isinstance(v, Floats) else constant(FLOATS, v) for v in (yes, no))
        return Floats(self.builder, self.builder.select(self.value, a, b))


class Ints:
    """Sixteen int32, as the bits of floats."""

    def __init__(self, builder: Value, value: Value) -> None:
        self.builder, self.value = builder, value

    def _with(self, number: int) -> Value:
        return constant(INTS, number)

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
        """Returns the floats that have these bits."""
        return Floats(self.builder, self.builder.bitcast(self.value, FLOATS))

    def as_numbers(self) -> "Floats":
        """Converts the integers to floats."""
        return Floats(self.builder, self.builder.sitofp(self.value, FLOATS))


class Floats:
    """Sixteen float32."""

    def __init__(self, builder: Value, value: Value) -> None:
        self.builder, self.value = builder, value

    def _of(self, other: "Floats | float") -> Value:
        return other.value if isinstance(other, Floats) else constant(FLOATS, float(other))

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
        """Returns where both are the same number; NaN is none."""
        return self._compared("==", other)

    def differs(self, other: "Floats | float") -> Truth:
        """Returns where they are not the same number; NaN differs from all."""
        return self._compared("!=", other, ordered=False)

    def is_nan(self) -> Truth:
        """Returns where it is NaN."""
        return self._compared("uno", self, ordered=False)

    def times(self, factor: "Floats | float", term: "Floats | float") -> "Floats":
        """Returns self * factor + term, in one instruction where there is one."""
        return Floats(self.builder, llvm.fused(self.builder, self.value, self._of(factor), self._of(term)))

    def apply(self, name: str) -> "Floats":
        """Applies an intrinsic of LLVM of one vector: sqrt, fabs, floor, ceil, rint."""
        return Floats(self.builder, llvm.call(self.builder, f"llvm.{name}.v16f32", FLOATS, (self.value,)))

    def at_least(self, least: "Floats | float") -> "Floats":
        """Returns the larger of both; NaN in self stays, NaN in `least` does not count."""
        return (self < least).choose(least, self)

    def at_most(self, most: "Floats | float") -> "Floats":
        """Returns the smaller of both; NaN in self stays, NaN in `most` does not count."""
        return (self > most).choose(most, self)

    def bits(self) -> Ints:
        """Returns their bits."""
        return Ints(self.builder, self.builder.bitcast(self.value, INTS))


def either(where: Truth, careful: Callable[[], Floats], plain: Callable[[], Floats]) -> Floats:
    """Returns `plain()`; where the condition holds for one lane or more, `careful()` for all of them."""
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
    return Floats(builder, llvm.merge(builder, (slow, fast), (from_rare, from_usual)))


Lanes = Value
"""Which lanes count: a mask, or None for all."""


def load(builder: Value, address: Value, lanes: Lanes) -> Floats:
    """Returns 16 floats from an address; those that do not count are 0 and are not read."""
    return Floats(builder, llvm.load(builder, address, FLOATS, lanes))


def store(builder: Value, address: Value, lanes: Lanes, floats: Floats) -> None:
    """Writes the floats of the lanes that count to an address."""
    llvm.store(builder, address, floats.value, lanes)


def load_truth(builder: Value, address: Value, lanes: Lanes) -> Floats:
    """Returns 1 for each of 16 bytes that is not 0, else 0."""
    truths = llvm.load(builder, address, BYTES, lanes)
    return Truth(builder, builder.icmp_unsigned("!=", truths, constant(BYTES, 0))).choose(1.0, 0.0)


def store_truth(builder: Value, address: Value, lanes: Lanes, floats: Floats) -> None:
    """Writes a byte for each: 0 for 0, else 1."""
    llvm.store(builder, address, builder.zext(floats.differs(0.0).value, BYTES), lanes)


Carried = list[Value]
Body = Callable[[Value, Lanes, Carried], Carried]
"""Code for the 16 elements from a number on (a word): f(number, lanes, carried values) -> the values after them."""


def each_vector(builder: Value, count: Value, started: Carried, body: Body) -> Carried:
    """Writes code for `count` elements, 16 at a time, and then for those that are left; returns the carried values.

    count = 37:   0 ... 15 | 16 ... 31 | 32 ... 36
                  body(0)    body(16)    body(32) with a mask of 5 lanes
    """
    full = builder.and_(count, word(-LANES))
    carried = loop(builder, full, started, lambda i, c: body(i, None, c), stride=LANES)
    left = builder.sub(count, full)
    before, rest, behind = builder.block, builder.append_basic_block("rest"), builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", left, word(0)), rest, behind)
    builder.position_at_end(rest)
    ended = body(full, first_lanes(builder, left), carried)
    inside = builder.block
    builder.branch(behind)
    builder.position_at_end(behind)
    return [llvm.merge(builder, pair, (before, inside)) for pair in zip(carried, ended, strict=True)]
