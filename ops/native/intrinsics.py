"""Emitted LLVM code as functions that compiled Python calls. Imports numba: only modules of compiled code load it.

multiply = intrinsic_of(emit)        # emit(builder, *values) writes the code
multiply((x, y, count))              # in compiled Python: one tuple, or a NamedTuple whose fields have names
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from ops.tensor.layout import CACHE_LINE


def intrinsic_of(emit: Callable[..., Any], *, returns: Any = types.void) -> Any:
    """Returns f(values), a function of one tuple that becomes the code of emit(builder, *values)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = emit(builder, *_unpack(builder, signature.args[0], values[0]))
        return context.get_dummy_value() if returns is types.void else result

    def typed(_: Any, values: Any) -> Any:
        return returns(values), generate

    return intrinsic(typed)


def intrinsic_of_two(emit: Callable[..., None]) -> Any:
    """Returns f(words, numbers), of two tuples, int64 and float64, that becomes emit(builder, words, numbers)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit(builder, *(_unpack(builder, kind, value) for kind, value in zip(signature.args, values, strict=True)))
        return context.get_dummy_value()

    def typed(_: Any, words: Any, numbers: Any) -> Any:
        return types.void(words, numbers), generate

    return intrinsic(typed)


def _unpack(builder: Any, kind: Any, value: Any) -> list[Any]:
    return [builder.extract_value(value, i) for i in range(len(kind))]


def stack(nbytes: int) -> Any:
    """Returns f(): the address of so many bytes of its caller's stack, at the start of a cache line."""

    def generate(_: Any, builder: Any, __: Any, ___: Any) -> Any:
        with builder.goto_entry_block():
            scratch = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
            scratch.align = CACHE_LINE
        return builder.ptrtoint(scratch, ir.IntType(64))

    def typed(_: Any) -> Any:
        return types.int64(), generate

    return intrinsic(typed)
