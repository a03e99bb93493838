"""The threads that run programs of compiled calls together, each its part of every call."""

import threading
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import define, field

from engine.executor.helpers import Helpers
from engine.threads import cpus
from ops.native.door import region_address, run_alone, run_forked, run_part
from ops.native.states import FAILED, OVER, STATUS, clear, new_state
from ops.onednn.openmp import team_addresses, with_live_threads
from ops.spec import Array

_TURNS = 4
_REGION = ("ops.native.program_code", "region")
Outcome = tuple[int, int]
"""The step that failed, or -1, and its status."""


class Runner(Protocol):
    """Runs a table of steps (ops.native.call.table_of)."""

    def run(self, table: Array, foreign: bool, /) -> Outcome:
        """Runs all steps in their order; `foreign` tells whether any is."""


class Alone:
    """The caller's thread."""

    def run(self, table: Array, _: bool, /) -> Outcome:
        """Runs all steps in their order."""
        return run_alone()(table)


ALONE = Alone()


@define(eq=False)
class _Turn:
    """What the threads of one run have in common. It serves again when all helpers that were called have left."""

    state: Array = field(factory=new_state)
    awaited: list[int] = field(factory=list)


class Team:
    """The caller's thread and at most `threads - 1` more, which are made at first use and end with the team.

    A run begins with those that come within a moment. How the work falls into parts changes no bit of a result, so a
    thread that is late, or cannot be had, costs time alone. What is foreign brings threads of OpenMP of its own: then
    these do the parts of compiled calls too, so that there are never more than `threads`.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._helpers = Helpers(threads - 1)
        self._turns = tuple(_Turn() for _ in range(_TURNS))
        self._lock = threading.Lock()

    def run(self, table: Array, foreign: bool, /) -> Outcome:
        """Runs all steps in their order. One run at a time: another caller waits."""
        with self._lock:
            if foreign:
                return with_live_threads(lambda: run_forked()(table, self._library))
            turn = next((turn for turn in self._turns if not turn.awaited), None)
            return ALONE.run(table, foreign) if turn is None else self._together(table, turn)

    def _together(self, table: Array, turn: "_Turn") -> Outcome:
        """Helpers that leave late keep their turn from being taken again; where all are taken, one thread does it."""
        clear(turn.state)
        self._helpers.start()
        turn.awaited = list(range(1, self.threads))
        try:
            for thread in range(1, self.threads):
                self._helpers.submit(_Help(table, turn), thread)
            run_part()(table, turn.state, self.threads)
        finally:
            turn.state[OVER // 8] = 1  # where an interrupt came first, nobody may wait for this thread
        return int(turn.state[FAILED // 8]), int(turn.state[STATUS // 8])

    @cached_property
    def _library(self) -> Array:
        """What `run_forked` wants to know of OpenMP."""
        return np.array((*team_addresses(), region_address(*_REGION), self.threads), np.int64)


@define(eq=False)
class _Help:
    table: Array
    turn: _Turn

    def __call__(self, thread: int) -> None:
        try:
            run_part()(self.table, self.turn.state, 0)
        finally:
            self.turn.awaited.remove(thread)


def team(threads: int) -> Runner:
    """Whoever runs programs on so many threads, at most as many as there are processors: more would only wait."""
    most = min(threads, cpus())
    return Team(most) if most > 1 else ALONE
