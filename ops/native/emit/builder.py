"""What all emitters of LLVM code share: types, constants, vectors in memory, loops and branches.

Imports llvmlite: only modules of compiled code load it. `b` is an `ir.IRBuilder`. Addresses, counts and offsets are
words, integers of 64 bits; addresses and offsets are in bytes. A vector has 16 lanes, each with an element of 32 bits,
as a register of AVX-512 has; LLVM cuts it into what the processor has. A mask has a bit for each lane:

    lane      0 1 2 3 4 5 6 7 8 9 ...
    mask      1 1 1 1 1 0 0 0 0 0 ...     first_lanes(b, 5): a masked load does not touch memory where the bit is 0
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

Value = Any
"""A value of LLVM, or a type of it."""
LANES = 16
WORD, INT, BYTE, BIT = (ir.IntType(bits) for bits in (64, 32, 8, 1))
FLOAT, DOUBLE, VOID = ir.FloatType(), ir.DoubleType(), ir.VoidType()
FLOATS, INTS, BYTES, BITS = (ir.VectorType(kind, LANES) for kind in (FLOAT, INT, BYTE, BIT))
_NAMES = {FLOAT: "f32", INT: "i32", BYTE: "i8"}
_SIZES = {FLOAT: 4, INT: 4, BYTE: 1}
"""Elements of vectors: their names in names of intrinsics, and bytes, which are also their alignment."""


def word(number: int) -> Value:
    """Returns a constant word."""
    return ir.Constant(WORD, number)


def constant(kind: Value, number: float) -> Value:
    """Returns the vector constant of a number in each lane."""
    return ir.Constant(kind, [number] * kind.count)


def numbers(lanes: int = LANES, first: int = 0) -> Value:
    """Returns the numbers of the lanes, counted from `first`, as 32-bit integers."""
    return ir.Constant(ir.VectorType(INT, lanes), list(range(first, first + lanes)))


def splat(b: Value, scalar: Value, lanes: int = LANES) -> Value:
    """Returns a vector with the scalar in each lane."""
    kind = ir.VectorType(scalar.type, lanes)
    empty = ir.Constant(kind, ir.Undefined)
    one = b.insert_element(empty, scalar, ir.Constant(INT, 0))
    return b.shuffle_vector(one, empty, constant(ir.VectorType(INT, lanes), 0))


def splat_float(b: Value, double: Value, lanes: int = LANES) -> Value:
    """Returns a vector with a double, rounded to float32, in each lane."""
    return splat(b, b.fptrunc(double, FLOAT), lanes)


def splat_int(b: Value, number: Value, lanes: int = LANES) -> Value:
    """Returns a vector with the lower 32 bits of a word in each lane."""
    return splat(b, b.trunc(number, INT), lanes)


def first_lanes(b: Value, count: Value, lanes: int = LANES, first: int = 0) -> Value:
    """Returns the mask of the lanes whose numbers, counted from `first`, are below a word."""
    return b.icmp_signed("<", numbers(lanes, first), splat_int(b, count, lanes))


def function(b: Value, name: str, kind: Value) -> Value:
    """Returns the declaration of an outer function in the module of the builder."""
    declared = b.module.globals.get(name)
    return ir.Function(b.module, kind, name) if declared is None else declared


def call(b: Value, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """Calls the intrinsic of LLVM that has this name."""
    return b.call(function(b, name, ir.FunctionType(result, [a.type for a in arguments])), arguments)


def define(module: Value, name: str, arity: int, emit: Callable[[Value, Sequence[Value]], None]) -> Value:
    """Returns the function of `arity` words with the code of emit(b, words); it is written once a module."""
    defined = module.globals.get(name)
    if defined is not None:
        return defined
    own = ir.Function(module, ir.FunctionType(VOID, [WORD] * arity), name)
    own.linkage = "internal"
    own.attributes.add("noinline")
    b = ir.IRBuilder(own.append_basic_block("entry"))
    emit(b, own.args)
    b.ret_void()
    return own


def pointer(b: Value, address: Value, kind: Value, offset: int = 0) -> Value:
    """Returns a pointer to a value of that kind, `offset` bytes behind an address."""
    return b.inttoptr(b.add(address, word(offset)) if offset else address, kind.as_pointer())


def advance(b: Value, address: Value, number: Value, pitch: Value) -> Value:
    """Returns the address of element `number` of those that are `pitch` bytes apart; both are words or integers."""
    left, right = (word(n) if isinstance(n, int) else n for n in (number, pitch))
    return b.add(address, b.mul(left, right))


def load(b: Value, address: Value, kind: Value, mask: Value = None, *, otherwise: Value = None) -> Value:
    """Returns the vector at an address; with a mask, `otherwise` (zeros) where its bit is 0, where nothing is read."""
    place, size = pointer(b, address, kind), _SIZES[kind.element]
    if mask is None:
        return b.load(place, align=size, typ=kind)
    passed = constant(kind, 0) if otherwise is None else otherwise
    arguments = [place, ir.Constant(INT, size), mask, passed]
    return call(b, f"llvm.masked.load.v{kind.count}{_NAMES[kind.element]}.p0", kind, arguments)


def store(b: Value, address: Value, value: Value, mask: Value = None) -> None:
    """Writes a vector to an address; with a mask, the lanes alone whose bit is 1."""
    kind = value.type
    place, size = pointer(b, address, kind), _SIZES[kind.element]
    if mask is None:
        b.store(value, place, align=size)
        return
    arguments = [value, place, ir.Constant(INT, size), mask]
    call(b, f"llvm.masked.store.v{kind.count}{_NAMES[kind.element]}.p0", VOID, arguments)


def gather(b: Value, addresses: Value, mask: Value, otherwise: Value) -> Value:
    """Returns the floats at a vector of 16 addresses; `otherwise` where the bit of the mask is 0."""
    places = b.inttoptr(addresses, ir.VectorType(FLOAT.as_pointer(), LANES))
    arguments = [places, ir.Constant(INT, 4), mask, otherwise]
    return call(b, "llvm.masked.gather.v16f32.v16p0", FLOATS, arguments)


def prefetch(b: Value, place: Value) -> None:
    """Asks for the cache line at a pointer, to be read, and kept in all caches."""
    call(b, "llvm.prefetch.p0", VOID, [place, *(ir.Constant(INT, hint) for hint in (0, 3, 1))])


def fused(b: Value, left: Value, right: Value, term: Value) -> Value:
    """Returns left * right + term of vectors of float32, in one instruction where there is one."""
    return call(b, f"llvm.fmuladd.v{left.type.count}f32", left.type, [left, right, term])


def variables(b: Value, values: Sequence[Value]) -> list[Value]:
    """Returns pointers to variables with these values at first; LLVM keeps them in registers."""
    with b.goto_entry_block():
        places = [b.alloca(value.type) for value in values]
    for place, value in zip(places, values, strict=True):
        b.store(value, place)
    return places


Step = Callable[[Value, list[Value]], Sequence[Value]]
"""f(number of the step, values before it) -> values after it."""


def loop(b: Value, count: Value, carried: Sequence[Value], step: Step, *, stride: int = 1) -> list[Value]:
    """Returns the values after the steps 0, stride, 2 * stride ... below `count`, which may be 0."""
    before, head, body, after = b.block, *(b.append_basic_block(n) for n in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    number, values = b.phi(WORD), [b.phi(c.type) for c in carried]
    b.cbranch(b.icmp_signed("<", number, count), body, after)
    b.position_at_end(body)
    results = step(number, values)
    pairs = zip((number, *values), (word(0), *carried), (b.add(number, word(stride)), *results), strict=True)
    for phi, first, following in pairs:
        phi.add_incoming(first, before)
        phi.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(after)
    return values


@contextmanager
def counting(b: Value, count: Value, stride: int = 1) -> Iterator[Value]:
    """Puts the code inside `with` into a loop; yields the numbers 0, stride, 2 * stride ... below `count`."""
    before, head, body, after = b.block, *(b.append_basic_block(n) for n in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    number = b.phi(WORD)
    number.add_incoming(word(0), before)
    b.cbranch(b.icmp_signed("<", number, count), body, after)
    b.position_at_end(body)
    yield number
    number.add_incoming(b.add(number, word(stride)), b.block)
    b.branch(head)
    b.position_at_end(after)


def choose(
    b: Value, condition: Value, then: Callable[[], list[Value]], other: Callable[[], list[Value]]
) -> list[Value]:
    """Returns the values of one of two branches."""
    blocks = [b.append_basic_block(n) for n in ("then", "else", "join")]
    b.cbranch(condition, *blocks[:2])
    ends, results = [], []
    for block, branch in zip(blocks, (then, other), strict=False):
        b.position_at_end(block)
        results.append(branch())
        ends.append(b.block)
        b.branch(blocks[2])
    b.position_at_end(blocks[2])
    return [merge(b, pair, ends) for pair in zip(*results, strict=True)]


def merge(b: Value, values: Sequence[Value], blocks: Sequence[Value]) -> Value:
    """Returns the value of the block that control came from."""
    phi = b.phi(values[0].type)
    for value, block in zip(values, blocks, strict=True):
        phi.add_incoming(value, block)
    return phi


def switch(b: Value, selector: Value, cases: Mapping[int, Callable[[], Any]]) -> None:
    """Runs the case of an integer; nothing where there is none."""
    after = b.append_basic_block("after")
    chosen = b.switch(selector, after)
    for number, emit in cases.items():
        block = b.append_basic_block(f"case_{number}")
        chosen.add_case(ir.Constant(selector.type, number), block)
        b.position_at_end(block)
        emit()
        b.branch(after)
    b.position_at_end(after)


def transpose(b: Value, rows: Sequence[Value]) -> list[Value]:
    """Returns the columns of 16 vectors of 16 lanes, in four perfect shuffles.

    One of them interleaves vector i with vector i + 8, so it moves the top bit of the vector's number to the bottom of
    the lane's number, and the top bit of the lane's number to the bottom of the vector's number:

        vector, lane    abcd, efgh  ->  bcde, fgha

    After four of them vector and lane are exchanged: efgh, abcd.
    """
    half = LANES // 2
    orders = [shuffled(start + i // 2 + LANES * (i % 2) for i in range(LANES)) for start in (0, half)]
    vectors = list(rows)
    for _ in range(4):
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [b.shuffle_vector(low, high, order) for low, high in pairs for order in orders]
    return vectors


def shuffled(lanes: Iterable[int]) -> Value:
    """Returns the order of a shuffle: for each lane of the result, a lane of both vectors, counted through."""
    order = list(lanes)
    return ir.Constant(ir.VectorType(INT, len(order)), order)
