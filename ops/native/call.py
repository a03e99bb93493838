"""Calls of compiled functions as data, addresses and arguments, so that many run as one program without Python."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.native.records import Layout, pack_args
from ops.native.runners import COMPILED, run_alone, run_slices
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

Word = int | float
Argument = Array | Word | Sequence[Word] | None
"""The value of a field of a record; that of a field of an address is an array, or None."""


def as_words(numbers: Array | Iterable[Word]) -> Array:
    """Returns numbers in 64 bits each: integers as they are, floats as the bits of doubles; an array is returned."""
    if isinstance(numbers, np.ndarray):
        return numbers
    return np.array([_bits(n) if isinstance(n, float) else int(n) for n in numbers], np.int64)


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def refused(status: int) -> OpError:
    """Returns the error for a status of a library's function that is not 0."""
    return OpError(f"a library's function returned status {status}")


@frozen(eq=False)
class Step:
    """One call of a compiled function `void(address of the arguments, part, parts)`.

    All parts run at once, each on a thread of its own, and write to places of their own; the next step begins when all
    parts have ended. A single part computes everything. `address` is that of an entry (`allocator.machine_code.door`).
    A `FOREIGN` or `CHECK` step calls `int(a, b, c, d)` with its four words, once; where it does not return 0, no other
    step runs, and `explain` returns the error for that status.
    """

    address: int
    args: Array = field(converter=as_words)
    kind: int = COMPILED
    explain: Callable[[int], OpError] = refused


@frozen(eq=False)
class Native:
    """A thunk of steps. `keep` is what must live as long: every array that an argument points to."""

    steps: tuple[Step, ...]
    keep: tuple[Any, ...] = ()

    @cached_property
    def table(self) -> Array:
        """The table of the compiled runner."""
        return table_of(self.steps)

    def __call__(self) -> None:
        """Runs the steps on this thread. Raises OpError where a foreign one fails, or a check does."""
        failed, status = run_slices(run_alone, self.table)
        if failed >= 0:
            raise self.steps[failed].explain(status)


def _field(value: Argument) -> Word | Sequence[Word]:
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    return 0 if value is None else value


def arguments(layout: Layout, values: Mapping[str, Argument]) -> tuple[Array, tuple[Array, ...]]:
    """Returns the words of a record, and the arrays that they point to."""
    arrays = tuple(value for value in values.values() if isinstance(value, np.ndarray))
    return pack_args(layout, **{name: _field(value) for name, value in values.items()}), arrays


def native_call(function: int, layout: Layout, **values: Argument) -> Native:
    """Returns one call of a compiled function with a record of these fields.

    An array is passed as its address, and lives as long as the call; None is the address 0.
    """
    args, arrays = arguments(layout, values)
    return Native((Step(function, args),), arrays)


def table_of(steps: Iterable[Step]) -> Array:
    """Returns the table of the compiled runner: a ROW for each step."""
    rows = [(s.address, s.args.ctypes.data, s.kind) for s in steps]
    return np.array(rows, np.int64).reshape(len(rows), 3)


def joined(natives: Iterable[Native]) -> Native:
    """Returns one thunk of the steps of all."""
    parts = tuple(natives)
    return Native(tuple(s for n in parts for s in n.steps), parts)
