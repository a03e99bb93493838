"""Calls of primitives as functions of C. Imports numba: `ops.native.door` loads it, on first use.

The library's vector code takes the maximum of NaN and a number for the number, and a product of infinity and zero for
the end of a smooth function. Both leave a mark: the processor's flag of an invalid operation, which stays until it is
cleared (IEEE 754; Intel's manual says so of MAXPS, whatever kind of NaN). Only then all is done again, more carefully.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from ops.native.memory import Decorator, call_foreign, floats, jitable, look_at, put_at, real, share, word
from ops.onednn.args import (
    ALGORITHM,
    ARGUMENTS,
    BARE_ARGUMENTS,
    BARE_PRIMITIVE,
    COUNT,
    ELEMENTS,
    EXECUTE,
    HIGH,
    LOW,
    PARALLEL,
    PRIMITIVE,
    REGION,
    SEEN,
    SET_THREADS,
    STREAM,
    TARGET,
    THREADS,
)
from ops.onednn.declarations import CLIP, GELU_ERF, GELU_TANH

_intrinsic: Decorator = intrinsic
_INVALID = 1
_ROOT = math.sqrt(0.5)
_TANH_SCALE, _CUBE = math.sqrt(2 / math.pi), 0.044715


@_intrinsic
def _take_flag(_: Any) -> Any:
    """This thread's flag of an invalid operation on floats, which is then cleared."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        module, byte, number = builder.module, ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte])
        store, load = (module.declare_intrinsic(f"llvm.x86.sse.{n}mxcsr", fnty=kind) for n in ("st", "ld"))
        place = builder.alloca(number)
        builder.call(store, [builder.bitcast(place, byte)])
        found = builder.load(place)
        builder.store(builder.and_(found, ir.Constant(number, ~_INVALID & 0xFFFFFFFF)), place)
        builder.call(load, [builder.bitcast(place, byte)])
        return builder.zext(builder.and_(found, ir.Constant(number, _INVALID)), ir.IntType(64))

    return types.int64(), generate


def gather(place: int) -> None:
    """Marks the word at a place where this thread's flag is set, and clears the flag. A function of one thread's."""
    if _take_flag():
        put_at(place, 1)


@jitable
def invalid(words: int) -> bool:
    """Whether any thread's flag was set; none is afterwards."""
    if word(words, THREADS) == 1:
        return bool(_take_flag())
    seen = words + 8 * SEEN
    put_at(seen, 0)
    call_foreign(word(words, PARALLEL), word(words, REGION), seen, word(words, THREADS), 0)
    return bool(look_at(seen))


@jitable
def run(words: int, primitive: int, arguments: int) -> int:
    """Runs the primitive and the arguments that stand in these two words; returns the status."""
    execute, stream, count = word(words, EXECUTE), word(words, STREAM), word(words, COUNT)
    status: int = call_foreign(execute, word(words, primitive), stream, count, word(words, arguments))
    return status


@jitable
def _finish(words: int, first: int, last: int) -> None:
    """The activation of sums, in place: bounds that let NaN through, or a smooth function."""
    algorithm, y = word(words, ALGORITHM), floats(word(words, TARGET), last)
    if algorithm == CLIP:
        low, high = np.float32(real(words, LOW)), np.float32(real(words, HIGH))
        for i in range(first, last):
            v = y[i]
            v = low if v < low else v
            y[i] = high if v > high else v
    else:
        for i in range(first, last):
            y[i] = np.float32(_smooth(float(y[i]), algorithm))


@jitable
def _smooth(x: float, algorithm: int) -> float:
    if algorithm == GELU_ERF:
        return x * (0.5 * (1 + math.erf(x * _ROOT)))
    if algorithm == GELU_TANH:
        return x * (0.5 * (1 + math.tanh(_TANH_SCALE * (x + _CUBE * x * x * x))))
    return x / (1 + math.exp(-x))


def execute(words: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive on its number of threads, which OpenMP keeps for each calling thread; returns its status."""
    call_foreign(word(words, SET_THREADS), word(words, THREADS), 0, 0, 0)
    return int(run(words, PRIMITIVE, ARGUMENTS))


def execute_watched(words: int, _: int, __: int, ___: int) -> int:
    """The same; where an operation was invalid, runs it without its activation, which is then done here."""
    call_foreign(word(words, SET_THREADS), word(words, THREADS), 0, 0, 0)
    invalid(words)
    status = run(words, PRIMITIVE, ARGUMENTS)
    if status == 0 and invalid(words):
        status = run(words, BARE_PRIMITIVE, BARE_ARGUMENTS)
        _finish(words, 0, word(words, ELEMENTS))
        invalid(words)
    return int(status)


def finish(words: int, part: int, parts: int) -> None:
    """A share of the activation of what a primitive wrote over an operand, which cannot be done again."""
    first, last = share(word(words, ELEMENTS), part, parts)
    _finish(words, first, last)


def copy(words: int, part: int, parts: int) -> None:
    """A share of a copy of floats: source, target, how many."""
    count = word(words, 2)
    source, target = floats(word(words, 0), count), floats(word(words, 1), count)
    first, last = share(count, part, parts)
    for i in range(first, last):
        target[i] = source[i]


def add_rows(words: int, part: int, parts: int) -> None:
    """Adds a row of floats to a share of many: row, target, its length, how many."""
    length, count = word(words, 2), word(words, 3)
    row, target = floats(word(words, 0), length), floats(word(words, 1), length * count)
    first, last = share(count, part, parts)
    for i in range(first, last):
        for j in range(length):
            target[i * length + j] += row[j]
