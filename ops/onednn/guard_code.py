"""Calls of primitives, with compiled steps of another kernel where the library's numbers may differ from numpy's.

Imports numba: a door loads it, on first use.
"""

from typing import Any

from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from allocator.machine_code.entry import FOREIGN, entry
from allocator.machine_code.memory import Decorator
from ops.native.emit.builder import INT, INTS, WORD, Value, advance, call, constant, splat_int
from ops.native.memory import call_compiled, call_foreign, load_atomic, record_at, share, store_atomic
from ops.native.records import offset
from ops.onednn.args import CALL, FALLBACK, SEARCH
from ops.onednn.execute_code import FLAGS, run, take_invalid
from ops.vector.lanes import Carried, Lanes, each_vector, load

_intrinsic: Decorator = intrinsic
_OTHERWISE = offset(CALL, "otherwise")


@_intrinsic
def _any_same(_: Any, address: Any, count: Any, bits: Any) -> Any:
    """Returns 0 unless one of `count` floats has these bits, which are not 0: those of lanes that are not read."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        address, count, bits = values
        expected = splat_int(builder, bits)

        def compare(at: Value, lanes: Lanes, carried: Carried) -> Carried:
            element = load(builder, advance(builder, address, at, 4), lanes).bits()
            same = builder.icmp_signed("==", element.value, expected)
            return [builder.or_(carried[0], builder.sext(same, INTS))]

        (seen,) = each_vector(builder, count, [constant(INTS, 0)], compare)
        return builder.zext(call(builder, "llvm.vector.reduce.or.v16i32", INT, (seen,)), WORD)

    return types.int64(types.int64, types.int64, types.int64), generate


@entry()
def seek(address: int, part: int, parts: int) -> None:
    """Sets the mark if a float of this part's share has these very bits; the arguments are SEARCH."""
    args = record_at(address, SEARCH)
    first, last = share(args.count, part, parts)
    if _any_same(args.values + 4 * first, last - first, args.bits):
        store_atomic(args.mark, 1)


@entry(FOREIGN, needs=FLAGS)
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


@entry()
def otherwise(address: int, part: int, parts: int) -> None:
    """Runs a step of another kernel if its mark is set; the arguments are FALLBACK."""
    args = record_at(address, FALLBACK)
    if load_atomic(args.mark):
        call_compiled(args.function, args.args, part, parts)
