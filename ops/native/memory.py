"""What compiled functions read their arguments with, and what threads wait for each other with.

Imports numba: only modules of compiled code import this one. An address is an int64, in bytes.
"""

import os
import time
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from allocator.machine_code.instructions import has
from allocator.machine_code.memory import Decorator, jitable, pointer
from ops.native.emit import builder as llvm
from ops.native.emit.builder import WORD

_intrinsic: Decorator = intrinsic
_CLOCK = getattr(time, "CLOCK_MONOTONIC", None)


@_intrinsic
def word(_: Any, words: Any, index: Any) -> Any:
    """Returns word `index` of those at the address `words`."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        place = llvm.advance(builder, values[0], values[1], 8)
        return builder.load(llvm.pointer(builder, place, WORD), typ=WORD)

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def real(_: Any, words: Any, index: Any) -> Any:
    """Returns the same word as a double."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        place = llvm.advance(builder, values[0], values[1], 8)
        return builder.load(llvm.pointer(builder, place, llvm.DOUBLE), typ=llvm.DOUBLE)

    return types.float64(types.int64, types.int64), generate


@jitable
def floats(address: int, count: int) -> Any:
    """Returns the array of `count` float32 at an address."""
    return carray(pointer(address), (count,), np.float32)


@jitable
def doubles(address: int, count: int) -> Any:
    """Returns the array of `count` float64 at an address."""
    return carray(pointer(address), (count,), np.float64)


@jitable
def ints(address: int, count: int) -> Any:
    """Returns the array of `count` int32 at an address."""
    return carray(pointer(address), (count,), np.int32)


@jitable
def shorts(address: int, count: int) -> Any:
    """Returns the array of `count` uint16 at an address."""
    return carray(pointer(address), (count,), np.uint16)


@jitable
def octets(address: int, count: int) -> Any:
    """Returns the array of `count` uint8 at an address."""
    return carray(pointer(address), (count,), np.uint8)


@jitable
def signed_octets(address: int, count: int) -> Any:
    """Returns the array of `count` int8 at an address."""
    return carray(pointer(address), (count,), np.int8)


@jitable
def record_at(address: int, layout: Any) -> Any:
    """Returns the record of `ops.native.records` at an address: its fields by name, each read when it is used."""
    return carray(pointer(address), (1,), layout)[0]


@jitable
def records_at(address: int, count: int, layout: Any) -> Any:
    """Returns `count` records one behind the other."""
    return carray(pointer(address), (count,), layout)


@jitable
def share(total: int, part: int, parts: int) -> tuple[int, int]:
    """Returns the numbers [first, last) below `total` that are this part's."""
    return total * part // parts, total * (part + 1) // parts


@_intrinsic
def call_compiled(_: Any, address: Any, words: Any, part: Any, parts: Any) -> Any:
    """Calls a `void(words, part, parts)` at an address."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        kind = ir.FunctionType(llvm.VOID, [WORD] * 3)
        builder.call(llvm.pointer(builder, values[0], kind), values[1:])
        return llvm.word(0)

    return types.int64(*[types.int64] * 4), generate


@_intrinsic
def call_foreign(_: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Calls an `int32(a, b, c, d)` at an address, and returns its result."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        kind = ir.FunctionType(llvm.INT, [WORD] * 4)
        status = builder.call(llvm.pointer(builder, values[0], kind), values[1:])
        return builder.sext(status, WORD)

    return types.int64(*[types.int64] * 5), generate


@_intrinsic
def fork(_: Any, library: Any, function: Any, data: Any, threads: Any) -> Any:
    """Calls `void(data)` on so many threads of OpenMP; `library` is the address of its GOMP_parallel."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        threads = builder.trunc(values[3], llvm.INT)
        kind = ir.FunctionType(llvm.VOID, [WORD, WORD, llvm.INT, llvm.INT])
        flags = ir.Constant(llvm.INT, 0)
        builder.call(llvm.pointer(builder, values[0], kind), [values[1], values[2], threads, flags])
        return llvm.word(0)

    return types.int64(*[types.int64] * 4), generate


@_intrinsic
def ask(_: Any, function: Any) -> Any:
    """Calls an `int32()` at an address, and returns its result."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        result = builder.call(llvm.pointer(builder, values[0], ir.FunctionType(llvm.INT, [])), [])
        return builder.sext(result, WORD)

    return types.int64(types.int64), generate


@_intrinsic
def add_atomic(_: Any, address: Any, number: Any) -> Any:
    """Adds to the word at an address atomically; returns what it was before."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.atomic_rmw("add", llvm.pointer(builder, values[0], WORD), values[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def load_atomic(_: Any, address: Any) -> Any:
    """Returns the word at an address, loaded atomically: all that its writer wrote before it is seen, too."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.load_atomic(llvm.pointer(builder, values[0], WORD), "seq_cst", 8, typ=WORD)

    return types.int64(types.int64), generate


@_intrinsic
def store_atomic(_: Any, address: Any, number: Any) -> Any:
    """Stores the word at an address atomically, after all that was written before."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        builder.store_atomic(values[1], llvm.pointer(builder, values[0], WORD), "seq_cst", 8)
        return llvm.word(0)

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def pause(_: Any) -> Any:
    """Waits a moment in a spin loop, in which the processor may do something else."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        if has("sse2"):
            builder.call(llvm.function(builder, "llvm.x86.sse2.pause", ir.FunctionType(llvm.VOID, [])), [])
        return llvm.word(0)

    return types.int64(), generate


@_intrinsic
def yield_processor(_: Any) -> Any:
    """Lets the system run another thread, where it has such a call."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        if os.name == "posix":
            builder.call(llvm.function(builder, "sched_yield", ir.FunctionType(llvm.INT, [])), [])
        return llvm.word(0)

    return types.int64(), generate


@_intrinsic
def now(_: Any) -> Any:
    """Returns the nanoseconds of a clock that never goes back; always 0 where the system has none to ask."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        if _CLOCK is None:
            return llvm.word(0)
        with builder.goto_entry_block():
            time_of = builder.alloca(WORD, 2)
        kind = ir.FunctionType(llvm.INT, [llvm.INT, time_of.type])
        builder.call(llvm.function(builder, "clock_gettime", kind), [ir.Constant(llvm.INT, _CLOCK), time_of])
        seconds, rest = (builder.load(builder.gep(time_of, [llvm.word(i)]), typ=WORD) for i in range(2))
        return builder.add(builder.mul(seconds, llvm.word(1_000_000_000)), rest)

    return types.int64(), generate
