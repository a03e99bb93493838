"""What compiled functions reach arrays with whose addresses they are given.

Imports numba: only modules of compiled code import this one. An address is an int64, in bytes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic, register_jitable

Decorator = Callable[[Callable[..., Any]], Any]
jitable: Decorator = register_jitable
"""For functions that compiled functions of this and other modules call."""
_intrinsic: Decorator = intrinsic


@_intrinsic
def pointer(_: Any, address: Any) -> Any:  # noqa: ARG001 - numba types it by its parameters' names
    """Returns an address as an untyped pointer, for `numba.carray`."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@jitable
def array_at(address: int, shape: Any, dtype: Any) -> Any:
    """Returns the dense array at an address; the shape is a tuple."""
    return carray(pointer(address), shape, dtype)


@jitable
def fill(row: Any, value: Any) -> None:
    """Writes a number to each element of a row. An assignment to a slice would want the runtime of numba."""
    for i in range(len(row)):
        row[i] = value


@jitable
def copy(source: Any, target: Any) -> None:
    """Copies a row to one that is at least as long."""
    for i in range(len(source)):
        target[i] = source[i]


@jitable
def longs(address: int, count: int) -> Any:
    """Returns the array of `count` int64 at an address."""
    return carray(pointer(address), (count,), np.int64)
