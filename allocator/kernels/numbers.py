"""What kernels compute on, and how they are declared, so that their machine code can be made.

A kernel gets int64 columns of numpy when compiled, else lists of int, which have Python's numbers.
"""

from typing import Annotated, Any, Protocol

from allocator.machine_code.arrays import FLAGS, LONGS
from allocator.machine_code.entry import ARRAYS, EXACT, Function, entry


class NumberSequence(Protocol):
    """Integers that are read and written one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


Numbers = Annotated[NumberSequence, LONGS]
Flags = Annotated[NumberSequence, FLAGS]
"""Numbers that are 0 or 1, in a byte each when compiled."""


def fill(row: Any, value: int) -> None:
    """Writes a number everywhere into a row of a table. Compiled, an assignment to a slice would allocate memory."""
    for k in range(len(row)):
        row[k] = value


def kernel(function: Function) -> Function:
    """Declares a kernel: a plain function that is also compiled."""
    return entry(ARRAYS, fastmath=EXACT)(function)
