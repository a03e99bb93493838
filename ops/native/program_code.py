"""The loop that runs programs of compiled calls. Imports numba: a door loads it, on first use.

Python handles signals only between calls of compiled code. So the loop returns after the step in which its time is up,
and is called again to go on from there.
"""

from typing import Any

from allocator.machine_code.entry import CALL, REGION, entry
from allocator.machine_code.memory import jitable
from ops.native.barrier import ARRIVED, CLOSED, FAILED, GO, JOINED, LEFT, OVER, PARTS, STATUS
from ops.native.memory import (
    add_atomic,
    ask,
    call_compiled,
    call_foreign,
    fork,
    load_atomic,
    now,
    pause,
    record_at,
    records_at,
    store_atomic,
    yield_processor,
)
from ops.native.runners import COMPILED, FORKED_RUN, LINGER, OPENMP, PART, ROW, RUN, SHARED_RUN

_SPINS = 1 << 12
"""Loads of a word before a waiting thread lets the system run another one."""
_LINGER_SPINS = 1 << 16
"""Loads by a thread that has done its part: another run often follows, and a sleeping thread is woken late."""
_JOIN_SPINS = 1 << 15
"""Loads before the first thread begins without those that have not come."""
_SLICE = 50_000_000
"""Nanoseconds after which no further step begins."""


@entry(CALL)
def run_alone(address: int) -> int:
    """Runs the steps of a RUN on this thread; returns the row as `ops.native.runners.run_alone` does."""
    args, until = record_at(address, RUN), now() + _SLICE
    steps = records_at(args.table, args.rows, ROW)
    for i in range(len(steps)):
        if steps[i].kind == COMPILED:
            call_compiled(steps[i].function, steps[i].args, 0, 1)
        else:
            status = _foreign(steps[i])
            if status != 0:
                args.status = status
                return i
        if now() > until:
            return i + 1
    return -1


@jitable
def _foreign(step: Any) -> int:
    words = step.args
    a, b, c, d = load_atomic(words), load_atomic(words + 8), load_atomic(words + 16), load_atomic(words + 24)
    status: int = call_foreign(step.function, a, b, c, d)
    return status


@jitable
def _await(place: int, least: int, over: int) -> bool:
    """Waits until the word at a place is no less than `least`, or the run is over; returns whether it is not over."""
    spins = 0
    while load_atomic(place) < least:
        if load_atomic(over):
            return False
        spins += 1
        if spins < _SPINS:
            pause()
        else:
            yield_processor()
    return True


@jitable
def _gather(base: int, threads: int) -> int:
    """Lets the first thread wait a moment for the others; returns the number of parts that begin."""
    spins = 0
    while load_atomic(base + JOINED) < threads - 1 and spins < _JOIN_SPINS:
        spins += 1
        pause()
    parts: int = add_atomic(base + JOINED, CLOSED) + 1
    store_atomic(base + PARTS, parts)
    store_atomic(base + GO, 1)
    return parts


@jitable
def _join(base: int) -> int:
    """Returns the number of a helping thread once all begin; -1 where it came too late."""
    ticket: int = add_atomic(base + JOINED, 1)
    if ticket >= CLOSED:
        return -1
    return ticket + 1 if _await(base + GO, 1, base + OVER) else -1


@entry(REGION)
def region(data: int) -> None:
    """Runs one thread's part of one step, called by OpenMP; `data` is the address of a PART record."""
    step = record_at(data, PART)
    call_compiled(step.function, step.args, ask(step.thread_number), ask(step.thread_count))


@entry(CALL)
def run_forked(address: int) -> int:
    """Runs the steps of a FORKED_RUN on threads of OpenMP; returns the row as `ops.native.runners.run_forked` does."""
    args, until = record_at(address, FORKED_RUN), now() + _SLICE
    steps, openmp, part = (
        records_at(args.table, args.rows, ROW),
        record_at(args.openmp, OPENMP),
        record_at(args.part, PART),
    )
    part.thread_number, part.thread_count = openmp.thread_number, openmp.thread_count
    for i in range(len(steps)):
        if steps[i].kind == COMPILED:
            part.function, part.args = steps[i].function, steps[i].args
            fork(openmp.parallel, openmp.region, args.part, openmp.threads)
        else:
            status = _foreign(steps[i])
            if status != 0:
                args.status = status
                return i
        if now() > until:
            return i + 1
    return -1


@jitable
def _arrive(base: int, parts: int, done: int) -> bool:
    """Waits until all threads have done so many steps; returns whether the run goes on."""
    if parts > 1:
        add_atomic(base + ARRIVED, 1)
        _await(base + ARRIVED, parts * done, base + OVER)
    goes_on: bool = load_atomic(base + OVER) == 0
    return goes_on


@jitable
def _leave(base: int, parts: int, done: int) -> None:
    """Leaves the run for a moment, when the others have done so many steps: they wait meanwhile, and write nothing."""
    if parts > 1:
        _await(base + ARRIVED, parts * done - 1, base + OVER)
    store_atomic(base + LEFT, done)


@jitable
def _start(base: int, threads: int, first: int) -> int:
    """Begins a run with the threads that come, or goes on with its step `first`; returns the number of parts."""
    if first == 0:
        begun: int = _gather(base, threads)
        return begun
    store_atomic(base + LEFT, 0)
    parts: int = load_atomic(base + PARTS)
    return parts if _arrive(base, parts, first) else 0


@entry(CALL)
def run_part(address: int) -> int:
    """Runs one thread's part of a SHARED_RUN; returns nothing of use."""
    args, until = record_at(address, SHARED_RUN), now() + _SLICE
    base, threads, steps = args.state, args.threads, records_at(args.table, args.rows, ROW)
    part = 0 if threads > 0 else _join(base)
    if part < 0:
        return 0
    first = load_atomic(base + LEFT) if part == 0 else 0
    parts = _start(base, threads, first) if part == 0 else load_atomic(base + PARTS)
    if parts == 0:
        return 0
    for i in range(first, len(steps)):
        if steps[i].kind == COMPILED:
            call_compiled(steps[i].function, steps[i].args, part, parts)
        elif part == 0:
            status = _foreign(steps[i])
            if status != 0:
                store_atomic(base + STATUS, status)
                store_atomic(base + FAILED, i)
                store_atomic(base + OVER, 1)
        if part == 0 and now() > until:
            _leave(base, parts, i + 1)
            return 0
        if not _arrive(base, parts, i + 1):
            return 0
    return 0


@entry(CALL)
def run_linger(address: int) -> int:
    """Returns whether the word at the place of a LINGER changes from what was seen within a millisecond or so."""
    args = record_at(address, LINGER)
    place, seen = args.place, args.seen
    for _ in range(_LINGER_SPINS):
        if load_atomic(place) != seen:
            return 1
        pause()
    return 0
