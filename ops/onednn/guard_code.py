"""Calls of primitives that give way to another kernel where the library's numbers may differ from numpy's.

Imports numba: `ops.native.door` loads it, on first use. What is done instead is a compiled step of the other kernel.
"""

from collections.abc import Callable
from typing import Any

from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from ops.native.emit.builder import INT, INTS, WORD, Value, advance, call, constant, splat_int
from ops.native.memory import Decorator, call_compiled, call_foreign, look_at, put_at, share, word
from ops.onednn.args import ARGUMENTS, OTHERWISE, PRIMITIVE, SET_THREADS, STRANGE, THREADS
from ops.onednn.execute_code import invalid, run
from ops.vector.lanes import Carried, Ints, Lanes, Truth, each_vector, load

_intrinsic: Decorator = intrinsic
_MAGNITUDE = 0x7FFFFFFF
_LARGE = (127 + 30) << 23
"""The bits of 2 ** 30: what is larger might overflow, and infinity and NaN have larger ones."""


def _is_large(builder: Value, bits: Ints, _: Value) -> Truth:
    limit = constant(INTS, _LARGE)
    return Truth(builder, builder.icmp_signed(">", (bits & _MAGNITUDE).value, limit))


def _is_same(builder: Value, bits: Ints, wanted: Value) -> Truth:
    return Truth(builder, builder.icmp_signed("==", bits.value, wanted))


def _any(condition: Callable[[Value, Ints, Value], Truth]) -> Any:
    """A compiled f(address, count, number) -> not 0 where a float has bits that fit; 0 is none of these."""

    @_intrinsic
    def found(_: Any, address: Any, count: Any, number: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
            address, count, number = values
            wanted = splat_int(builder, number)

            def look(at: Value, lanes: Lanes, carried: Carried) -> Carried:
                bits = load(builder, advance(builder, address, at, 4), lanes).bits()
                seen = builder.sext(condition(builder, bits, wanted).value, INTS)
                return [builder.or_(carried[0], seen)]

            (seen,) = each_vector(builder, count, [constant(INTS, 0)], look)
            return builder.zext(call(builder, "llvm.vector.reduce.or.v16i32", INT, (seen,)), WORD)

        return types.int64(types.int64, types.int64, types.int64), generate

    return found


_any_large, _any_same = _any(_is_large), _any(_is_same)


def scan(words: int, part: int, parts: int) -> None:
    """A share of a look at floats: marks a word where one is beyond 2 ** 30, or no number. Word, floats, how many."""
    first, last = share(word(words, 2), part, parts)
    if _any_large(word(words, 1) + 4 * first, last - first, 0):
        put_at(word(words, 0), 1)


def seek(words: int, part: int, parts: int) -> None:
    """The same, where a float has these very bits: word, floats, how many, bits."""
    first, last = share(word(words, 2), part, parts)
    if _any_same(word(words, 1) + 4 * first, last - first, word(words, 3)):
        put_at(word(words, 0), 1)


def execute_ordinary(words: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive where no input was marked as strange; returns its status."""
    strange = look_at(words + 8 * STRANGE)
    put_at(words + 8 * STRANGE, 0)
    put_at(words + 8 * OTHERWISE, strange)
    if strange:
        return 0
    call_foreign(word(words, SET_THREADS), word(words, THREADS), 0, 0, 0)
    return int(run(words, PRIMITIVE, ARGUMENTS))


def execute_flagged(words: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive; an invalid operation marks it as to be done otherwise. Returns its status."""
    put_at(words + 8 * OTHERWISE, 0)
    call_foreign(word(words, SET_THREADS), word(words, THREADS), 0, 0, 0)
    invalid(words)
    status = run(words, PRIMITIVE, ARGUMENTS)
    if invalid(words):
        put_at(words + 8 * OTHERWISE, 1)
    return int(status)


def otherwise(words: int, part: int, parts: int) -> None:
    """A step of another kernel, where that is marked: word, function, its words."""
    if look_at(word(words, 0)):
        call_compiled(word(words, 1), word(words, 2), part, parts)
