"""Calls of primitives, with compiled steps of another kernel where the library's numbers may differ from numpy's.

Imports numba: `ops.native.door` loads it, on first use.
"""

from collections.abc import Callable
from typing import Any

from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from ops.native.emit.builder import INT, INTS, WORD, Value, advance, call, constant, splat_int
from ops.native.memory import Decorator, call_compiled, call_foreign, load_atomic, record_at, share, store_atomic
from ops.native.records import offset
from ops.onednn.args import CALL, FALLBACK, SEARCH
from ops.onednn.execute_code import run, take_invalid
from ops.vector.lanes import Carried, Ints, Lanes, Truth, each_vector, load

_intrinsic: Decorator = intrinsic
_MAGNITUDE = 0x7FFFFFFF
_STRANGE, _OTHERWISE = offset(CALL, "strange"), offset(CALL, "otherwise")
_LARGE = (127 + 30) << 23
"""The bits of 2 ** 30: sums of larger numbers may overflow, and infinity and NaN have larger bits."""


def _is_large(builder: Value, bits: Ints, _: Value) -> Truth:
    limit = constant(INTS, _LARGE)
    return Truth(builder, builder.icmp_signed(">", (bits & _MAGNITUDE).value, limit))


def _is_same(builder: Value, bits: Ints, expected: Value) -> Truth:
    return Truth(builder, builder.icmp_signed("==", bits.value, expected))


def _any(condition: Callable[[Value, Ints, Value], Truth]) -> Any:
    """Returns a compiled f(address, count, number), which is 0 unless the bits of a float meet the condition.

    The bits 0 never meet it: they are those of lanes that are not read.
    """

    @_intrinsic
    def search(_: Any, address: Any, count: Any, number: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
            address, count, number = values
            expected = splat_int(builder, number)

            def compare(at: Value, lanes: Lanes, carried: Carried) -> Carried:
                bits = load(builder, advance(builder, address, at, 4), lanes).bits()
                seen = builder.sext(condition(builder, bits, expected).value, INTS)
                return [builder.or_(carried[0], seen)]

            (seen,) = each_vector(builder, count, [constant(INTS, 0)], compare)
            return builder.zext(call(builder, "llvm.vector.reduce.or.v16i32", INT, (seen,)), WORD)

        return types.int64(types.int64, types.int64, types.int64), generate

    return search


_any_large, _any_same = _any(_is_large), _any(_is_same)


def scan(address: int, part: int, parts: int) -> None:
    """Sets the mark if a float of this part's share is beyond 2 ** 30, or no number; the arguments are SEARCH."""
    args = record_at(address, SEARCH)
    first, last = share(args.count, part, parts)
    if _any_large(args.values + 4 * first, last - first, 0):
        store_atomic(args.mark, 1)


def seek(address: int, part: int, parts: int) -> None:
    """Sets the mark if a float of this part's share has these very bits; the arguments are SEARCH."""
    args = record_at(address, SEARCH)
    first, last = share(args.count, part, parts)
    if _any_same(args.values + 4 * first, last - first, args.bits):
        store_atomic(args.mark, 1)


def execute_ordinary(address: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive unless an input was marked as strange; returns its status. The arguments are CALL."""
    args = record_at(address, CALL)
    strange = load_atomic(address + _STRANGE)
    store_atomic(address + _STRANGE, 0)
    store_atomic(address + _OTHERWISE, strange)
    if strange:
        return 0
    call_foreign(args.set_threads, args.threads, 0, 0, 0)
    return int(run(args, args.primitive, args.arguments))


def execute_flagged(address: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive, and marks it to be computed otherwise if an operation was invalid; returns its status."""
    args = record_at(address, CALL)
    store_atomic(address + _OTHERWISE, 0)
    call_foreign(args.set_threads, args.threads, 0, 0, 0)
    take_invalid(address)
    status = run(args, args.primitive, args.arguments)
    if take_invalid(address):
        store_atomic(address + _OTHERWISE, 1)
    return int(status)


def otherwise(address: int, part: int, parts: int) -> None:
    """Runs a step of another kernel if its mark is set; the arguments are FALLBACK."""
    args = record_at(address, FALLBACK)
    if load_atomic(args.mark):
        call_compiled(args.function, args.args, part, parts)
