"""The loop that runs programs of compiled calls. Imports numba: `ops.native.door` loads it, on first use."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from ops.native.barrier import ARRIVED, CLOSED, FAILED, GO, JOINED, OVER, PARTS, STATUS
from ops.native.memory import (
    add_at,
    ask,
    call_compiled,
    call_foreign,
    fork,
    jitable,
    look_at,
    pause,
    put_at,
    step_aside,
    word,
)
from ops.tensor.spec import Array

_SPINS = 1 << 12
"""Looks before who waits lets the system run another thread."""
_LINGER_SPINS = 1 << 16
"""Looks of a thread that has done its part: another run often follows, and who sleeps is woken late."""
_JOIN_SPINS = 1 << 15
"""Looks before the first thread begins without those that have not come: some tenths of a millisecond."""


def _alone(table: Array) -> tuple[int, int]:
    for i in range(len(table)):
        if table[i, 2] == 0:
            call_compiled(table[i, 0], table[i, 1], 0, 1)
        else:
            status = _foreign(table, i)
            if status != 0:
                return i, status
    return -1, 0


@jitable
def _foreign(table: Array, i: int) -> int:
    words = table[i, 1]
    a, b, c, d = look_at(words), look_at(words + 8), look_at(words + 16), look_at(words + 24)
    status: int = call_foreign(table[i, 0], a, b, c, d)
    return status


@jitable
def _await(place: int, least: int, over: int) -> bool:
    """Until the word at a place is no less, or all is over; whether it is the former."""
    spins = 0
    while look_at(place) < least:
        if look_at(over):
            return False
        spins += 1
        if spins < _SPINS:
            pause()
        else:
            step_aside()
    return True


@jitable
def _gather(base: int, wanted: int) -> int:
    """The first thread waits a moment for the others; with how many parts it begins."""
    spins = 0
    while look_at(base + JOINED) < wanted - 1 and spins < _JOIN_SPINS:
        spins += 1
        pause()
    parts: int = add_at(base + JOINED, CLOSED) + 1
    put_at(base + PARTS, parts)
    put_at(base + GO, 1)
    return parts


@jitable
def _join(base: int) -> int:
    """The number of a thread that helps, once all begin; -1 where it came too late."""
    ticket: int = add_at(base + JOINED, 1)
    if ticket >= CLOSED:
        return -1
    return ticket + 1 if _await(base + GO, 1, base + OVER) else -1


def region(data: int) -> None:
    """One thread's part of one step, called by OpenMP: function, its words, and what tells thread and threads."""
    call_compiled(word(data, 0), word(data, 1), ask(word(data, 2)), ask(word(data, 3)))


def _forked(table: Array, library: Array) -> tuple[int, int]:
    data = np.empty(4, np.int64)
    data[2], data[3] = library[1], library[2]
    for i in range(len(table)):
        if table[i, 2] == 0:
            data[0], data[1] = table[i, 0], table[i, 1]
            fork(library[0], library[3], data.ctypes.data, library[4])
        else:
            status = _foreign(table, i)
            if status != 0:
                return i, status
    return -1, 0


def _part(table: Array, state: Array, wanted: int) -> None:
    base = state.ctypes.data
    part = 0 if wanted > 0 else _join(base)
    if part < 0:
        return
    parts = _gather(base, wanted) if part == 0 else look_at(base + PARTS)
    for i in range(len(table)):
        if table[i, 2] == 0:
            call_compiled(table[i, 0], table[i, 1], part, parts)
        elif part == 0:
            status = _foreign(table, i)
            if status != 0:
                put_at(base + STATUS, status)
                put_at(base + FAILED, i)
                put_at(base + OVER, 1)
        if parts > 1:
            add_at(base + ARRIVED, 1)
            _await(base + ARRIVED, parts * (i + 1), base + OVER)
        if look_at(base + OVER):
            return


def compile_alone(keeps: bool) -> Callable[[Array], tuple[int, int]]:
    """As ops.native.door.run_alone says."""
    types: Any = numba.types
    signature = types.UniTuple(numba.int64, 2)(numba.int64[:, ::1])
    made: Callable[[Array], tuple[int, int]] = numba.njit(signature, nogil=True, cache=keeps)(_alone)
    return made


def compile_forked(keeps: bool) -> Callable[[Array, Array], tuple[int, int]]:
    """As ops.native.door.run_forked says."""
    types: Any = numba.types
    signature = types.UniTuple(numba.int64, 2)(numba.int64[:, ::1], numba.int64[::1])
    made: Callable[[Array, Array], tuple[int, int]] = numba.njit(signature, nogil=True, cache=keeps)(_forked)
    return made


def _linger(place: int, seen: int) -> bool:
    for _ in range(_LINGER_SPINS):
        if look_at(place) != seen:
            return True
        pause()
    return False


def compile_linger(keeps: bool) -> Callable[[int, int], bool]:
    """As ops.native.door.run_linger says."""
    signature: Any = numba.boolean(numba.int64, numba.int64)
    made: Callable[[int, int], bool] = numba.njit(signature, nogil=True, cache=keeps)(_linger)
    return made


def compile_part(keeps: bool) -> Callable[[Array, Array, int], None]:
    """As ops.native.door.run_part says."""
    signature: Any = numba.void(numba.int64[:, ::1], numba.int64[::1], numba.int64)
    made: Callable[[Array, Array, int], None] = numba.njit(signature, nogil=True, cache=keeps)(_part)
    return made
