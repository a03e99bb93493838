"""Calls of compiled functions as data, addresses and arguments, so that many run as one program without Python."""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.native.door import run_alone
from ops.native.records import Layout, pack_args, record
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

Word = int | float
Outcome = tuple[int, int]
"""The step that failed, or -1, and its status. Where time was up, the first step that is left, and 0."""
COMPILED, FOREIGN, CHECK = 0, 1, 2
"""Kinds of steps: all threads run its parts; a library's function of four words, on the caller's thread; a compiled
function of our own that is called like it, and returns 0 where the other steps may run."""


ROW = record("function args kind: int64")
"""A row of the table that runners read: a step's function, the address of its arguments, its kind."""
OPENMP = record("parallel thread_number thread_count region threads: int64")
"""The words of OpenMP that `ops.native.door.run_forked` reads: the addresses of GOMP_parallel, omp_get_thread_num,
omp_get_num_threads and of `ops.native.program_code.region`, and the number of threads."""
PART = record("function args thread_number thread_count: int64")
"""The words that `region` reads: the function of a step, the address of its arguments, OpenMP's functions as above."""


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
    parts have ended. A single part computes everything. `address` is that of `ops.native.door.address`. A `FOREIGN` or
    `CHECK` step calls `int(a, b, c, d)` with its four words, once; where it does not return 0, no other step runs, and
    `explain` returns the error for that status.
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
        failed, status = run_slices(run_alone(), self.table)
        if failed >= 0:
            raise self.steps[failed].explain(status)


def run_slices(run: Callable[[Array], Outcome], table: Array) -> Outcome:
    """Runs a table to its end, with a function that may leave steps for later. In between Python handles signals."""
    done, rest = 0, table
    while True:
        row, status = run(rest)
        if row < 0:
            return row, status
        if status:
            return done + row, status
        done += row
        rest = table[done:]


def _field(value: Array | Word | Sequence[Word] | None) -> Word | Sequence[Word]:
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    return 0 if value is None else value


def native_call(function: int, layout: Layout, **values: Array | Word | Sequence[Word] | None) -> Native:
    """Returns one call of a compiled function with a record of these fields.

    An array is passed as its address, and lives as long as the call; None is the address 0.
    """
    arrays = tuple(value for value in values.values() if isinstance(value, np.ndarray))
    fields = {name: _field(value) for name, value in values.items()}
    return Native((Step(function, pack_args(layout, **fields)),), arrays)


def table_of(steps: Iterable[Step]) -> Array:
    """Returns the table of the compiled runner: a ROW for each step."""
    rows = [(s.address, s.args.ctypes.data, s.kind) for s in steps]
    return np.array(rows, np.int64).reshape(len(rows), 3)


def joined(natives: Iterable[Native]) -> Native:
    """Returns one thunk of the steps of all."""
    parts = tuple(natives)
    return Native(tuple(s for n in parts for s in n.steps), parts)
