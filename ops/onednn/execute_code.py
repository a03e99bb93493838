"""Calls of primitives as functions of C. Imports numba: a door loads it, on first use.

To the library's vector code, the maximum of NaN and a number is the number, and a product of infinity and zero is the
limit of a smooth function. Both leave a mark: the processor's flag of an invalid operation, which stays until it is
cleared (IEEE 754; Intel's manual says so of MAXPS, for any NaN). Only then the activation is computed again, here.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from allocator.machine_code.entry import FOREIGN, REGION, entry
from allocator.machine_code.memory import Decorator, jitable
from ops.native.memory import call_foreign, floats, load_atomic, record_at, share, store_atomic
from ops.native.records import offset
from ops.onednn.args import ADD_ROW, CALL, COPY
from ops.onednn.declarations import CLIP

_intrinsic: Decorator = intrinsic
FLAGS = ("sse2",)
"""The feature with which threads have MXCSR, the register of flags."""
_INVALID = 1
"""Bit of MXCSR: an operation was invalid."""
_SEEN = offset(CALL, "seen")


@_intrinsic
def _take_flag(_: Any) -> Any:
    """Returns this thread's flag of an invalid operation on floats, and clears it."""

    def generate(__: Any, builder: Any, ___: Any, ____: Any) -> Any:
        module, byte, number = builder.module, ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte])
        store, load = (module.declare_intrinsic(f"llvm.x86.sse.{n}mxcsr", fnty=kind) for n in ("st", "ld"))
        place = builder.alloca(number)
        builder.call(store, [builder.bitcast(place, byte)])
        status = builder.load(place)
        builder.store(builder.and_(status, ir.Constant(number, ~_INVALID & 0xFFFFFFFF)), place)
        builder.call(load, [builder.bitcast(place, byte)])
        return builder.zext(builder.and_(status, ir.Constant(number, _INVALID)), ir.IntType(64))

    return types.int64(), generate


@entry(REGION, needs=FLAGS)
def gather(place: int) -> None:
    """Sets the word at an address if this thread's flag is set, and clears the flag; each thread calls it."""
    if _take_flag():
        store_atomic(place, 1)


@jitable
def take_invalid(address: int) -> bool:
    """Returns whether any thread's flag was set, and clears all; the arguments are a CALL record."""
    args = record_at(address, CALL)
    if args.threads == 1:
        return bool(_take_flag())
    seen = address + _SEEN
    store_atomic(seen, 0)
    call_foreign(args.parallel, args.region, seen, args.threads, 0)
    return bool(load_atomic(seen))


@jitable
def run(args: Any, primitive: int, arguments: int) -> int:
    """Runs a primitive with the execution arguments at an address; returns the status."""
    status: int = call_foreign(args.execute, primitive, args.stream, args.count, arguments)
    return status


@jitable
def _finish(args: Any, first: int, last: int) -> None:
    """Applies the activation to sums, in place: bounds that let NaN through, or x * sigmoid(x)."""
    y = floats(args.target, last)
    if args.algorithm == CLIP:
        low, high = np.float32(args.low), np.float32(args.high)
        for i in range(first, last):
            v = y[i]
            v = low if v < low else v
            y[i] = high if v > high else v
    else:
        for i in range(first, last):
            x = float(y[i])
            y[i] = np.float32(x / (1 + math.exp(-x)))


@entry(FOREIGN)
def execute(address: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive on its number of threads, which OpenMP keeps for each calling thread; returns its status."""
    args = record_at(address, CALL)
    call_foreign(args.set_threads, args.threads, 0, 0, 0)
    return int(run(args, args.primitive, args.arguments))


@entry(FOREIGN, needs=FLAGS)
def execute_watched(address: int, _: int, __: int, ___: int) -> int:
    """Runs a primitive; if an operation was invalid, runs it again without its activation, which is then applied here.

    Returns the status.
    """
    args = record_at(address, CALL)
    call_foreign(args.set_threads, args.threads, 0, 0, 0)
    take_invalid(address)
    status = run(args, args.primitive, args.arguments)
    if status == 0 and take_invalid(address):
        status = run(args, args.bare_primitive, args.bare_arguments)
        _finish(args, 0, args.elements)
        take_invalid(address)
    return int(status)


@entry()
def finish(address: int, part: int, parts: int) -> None:
    """Applies the activation to a share of what a primitive wrote over an operand; it cannot be run again."""
    args = record_at(address, CALL)
    first, last = share(args.elements, part, parts)
    _finish(args, first, last)


@entry()
def copy(address: int, part: int, parts: int) -> None:
    """Copies a share of floats; the arguments are a COPY record."""
    args = record_at(address, COPY)
    source, target = floats(args.source, args.count), floats(args.target, args.count)
    first, last = share(args.count, part, parts)
    for i in range(first, last):
        target[i] = source[i]


@entry()
def add_rows(address: int, part: int, parts: int) -> None:
    """Adds a row of floats to a share of many; the arguments are an ADD_ROW record."""
    args = record_at(address, ADD_ROW)
    length = args.length
    row, target = floats(args.row, length), floats(args.target, length * args.count)
    first, last = share(args.count, part, parts)
    for i in range(first, last):
        for j in range(length):
            target[i * length + j] += row[j]
