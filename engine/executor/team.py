"""The threads that run programs of compiled calls together, each its part of every call."""

import os
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import define, field

from allocator.machine_code.door import address
from allocator.machine_code.mutex import Mutex
from engine.executor.helpers import Helpers
from engine.system.threads import cpus
from ops.native.barrier import FAILED, LEFT, OVER, STATUS, clear, new_state
from ops.native.records import pack_args
from ops.native.runners import (
    OPENMP,
    Outcome,
    load_for_threads,
    run_alone,
    run_forked,
    run_linger,
    run_part,
    run_slices,
)
from ops.onednn.openmp import team_addresses, with_live_threads
from ops.tensor.spec import Array

_TURNS = 4
_REGION = ("ops.native.program_code", "region")


class Runner(Protocol):
    """Something that runs a table of steps (ops.native.call.table_of)."""

    def run(self, table: Array, foreign: bool, /) -> Outcome:
        """Runs all steps in their order; `foreign` says whether any step calls a library."""


class Alone:
    """The caller's thread alone."""

    def run(self, table: Array, _: bool, /) -> Outcome:
        """Runs all steps in their order."""
        return run_slices(run_alone, table)


ALONE = Alone()


@define(eq=False)
class _Turn:
    """The shared state of the threads of one run. It is used again when all helpers that were called have left."""

    state: Array = field(factory=new_state)
    awaited: list[int] = field(factory=list)


class Team:
    """The caller's thread and at most `threads - 1` more, which are made at first use and end with the team.

    A run begins with the threads that come within a moment. The split into parts changes no bit of a result, so a
    thread that is late, or cannot be made, costs time only. Steps of libraries use threads of OpenMP: then these run
    the parts of compiled calls too, so that there are never more than `threads`.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._helpers = Helpers(threads - 1)
        self._mutex = Mutex()
        self._forget()

    def _forget(self) -> None:
        """Makes new turns: at the start, after an interrupt, in a forked process."""
        self._turns = tuple(_Turn() for _ in range(_TURNS))
        self._call = _Call(self._turns)
        self._process = os.getpid()

    def run(self, table: Array, foreign: bool, /) -> Outcome:
        """Runs all steps in their order. One run at a time: another caller waits."""
        with self._mutex.lock:
            if self._process != os.getpid():  # a fork copies no threads
                self._forget()
            if foreign:
                return run_slices(self._with_library, table)
            turn = next((turn for turn in self._turns if not turn.awaited), None)
            return ALONE.run(table, foreign) if turn is None else self._together(table, turn)

    def _with_library(self, table: Array) -> Outcome:
        return with_live_threads(lambda: run_forked(table, self._library))

    def _together(self, table: Array, turn: "_Turn") -> Outcome:
        """Runs a table with the helpers of a turn. Helpers that leave late keep their turn from being used again."""
        load_for_threads()  # in the first run, so that none later reads files
        clear(turn.state)
        self._helpers.start()
        try:
            turn.awaited = list(range(1, self.threads))
            for thread in self._call.out(table, turn):
                self._helpers.submit(self._call.help, thread)
            run_part(table, turn.state, self.threads)
            while turn.state[LEFT // 8]:  # Python has handled signals
                run_part(table, turn.state, self.threads)
        except BaseException:
            self._forget()  # an interrupt: a helper may be called that was never woken
            raise
        finally:
            turn.state[OVER // 8] = 1  # no thread may wait for this one
        return int(turn.state[FAILED // 8]), int(turn.state[STATUS // 8])

    @cached_property
    def _library(self) -> Array:
        """Returns what `run_forked` needs of OpenMP."""
        parallel, number, count = team_addresses()
        region = address(*_REGION)
        return pack_args(
            OPENMP, parallel=parallel, thread_number=number, thread_count=count, region=region, threads=self.threads
        )


class _Call:
    """The next work of the helpers. A helper that is done waits for a moment: it can be called without being woken."""

    def __init__(self, turns: tuple[_Turn, ...]) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self._number = np.zeros(1, np.int64)
        self._here: set[int] = set()
        self._what: tuple[Array, _Turn] = (np.empty((0, 3), np.int64), turns[0])

    def out(self, table: Array, turn: _Turn) -> list[int]:
        """Calls all helpers of a turn; returns those that are asleep and must be woken."""
        with self._lock:
            self._what = (table, turn)
            self._number[0] += 1
            asleep = [thread for thread in turn.awaited if thread not in self._here]
            self._here.update(asleep)
            return asleep

    def help(self, thread: int) -> None:
        """Runs the parts of a helper, until no call comes for a while."""
        seen = -1
        while self._is_called(thread, seen):
            with self._lock:
                (table, turn), seen = self._what, int(self._number[0])
            self._leave(thread, [other for other in self._turns if other is not turn])
            try:
                run_part(table, turn.state, 0)
            finally:
                self._leave(thread, [turn])

    def _leave(self, thread: int, turns: Iterable[_Turn]) -> None:
        """Removes a helper from these turns: it is done, or they were over before it came."""
        for turn in turns:
            if thread in turn.awaited:
                turn.awaited.remove(thread)

    def _is_called(self, thread: int, seen: int) -> bool:
        """Returns whether there is another call than the number `seen`; if not, the helper is asleep from now on."""
        if run_linger(self._number.ctypes.data, seen):
            return True
        with self._lock:
            called = int(self._number[0]) != seen
            if not called:
                self._here.discard(thread)
            return called


def team(threads: int) -> Runner:
    """Returns the runner for `threads` threads, or for one a processor if these are fewer: more would only wait."""
    most = min(threads, cpus())
    return Team(most) if most > 1 else ALONE
