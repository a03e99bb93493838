"""Calls of compiled functions as data: an address and words, so that many of them run as one program without Python."""

import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.native.door import run_alone
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

Word = int | float
COMPILED, FOREIGN, CHECK = 0, 1, 2
"""Kinds of steps: what all threads run in parts; a library's function of four words, on the caller's thread; a compiled
one of our own that is called like it, and tells whether the others may go on."""


def as_words(numbers: Array | Iterable[Word]) -> Array:
    """Returns numbers in 64 bits each: integers as they are, floats as the bits of doubles; an array is returned."""
    if isinstance(numbers, np.ndarray):
        return numbers
    return np.array([_bits(n) if isinstance(n, float) else int(n) for n in numbers], np.int64)


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def refused(status: int) -> OpError:
    """What is raised where a library's function does not return 0."""
    return OpError(f"a library's function returned status {status}")


@frozen(eq=False)
class Step:
    """One call of a compiled function `void(words, part, parts)`; `words` is the address of these words.

    All parts run at once, each on a thread of its own, and must write to places of their own; nobody begins with the
    next step before all are through. Of one part, that is everything. `address` comes from `ops.native.door.address`.
    A `FOREIGN` or `CHECK` step calls `int(a, b, c, d)` with its four words, once; where it does not return 0, no other
    step runs, and `explain` tells the error of what it returned.
    """

    address: int
    words: Array = field(converter=as_words)
    kind: int = COMPILED
    explain: Callable[[int], OpError] = refused


@frozen(eq=False)
class Native:
    """A thunk that is made of steps. `keep` is what must live as long: every array that a word points to."""

    steps: tuple[Step, ...]
    keep: tuple[Any, ...] = ()
    table: Array = field(init=False, repr=False)

    @table.default
    def _make_table(self) -> Array:
        return table_of(self.steps)

    def __call__(self) -> None:
        """Runs the steps on this thread. Raises OpError where a foreign one fails, or a check does."""
        failed, status = run_alone()(self.table)
        if failed >= 0:
            raise self.steps[failed].explain(status)


def table_of(steps: Iterable[Step]) -> Array:
    """What the compiled runner reads: address of the function, address of its words, kind; a row for each step."""
    rows = [(s.address, s.words.ctypes.data, s.kind) for s in steps]
    return np.array(rows, np.int64).reshape(len(rows), 3)


def joined(natives: Iterable[Native]) -> Native:
    """All of them as one."""
    found = tuple(natives)
    return Native(tuple(s for n in found for s in n.steps), found)
