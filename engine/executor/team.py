"""The threads that run programs of compiled calls together, each its part of every call."""

from typing import Protocol

import numpy as np
from attrs import define, field

from engine.executor.helpers import Helpers
from ops.native.door import region, run_alone, run_forked, run_part
from ops.native.states import FAILED, OVER, STATUS, clear, new_state
from ops.onednn.openmp import team_addresses
from ops.spec import Array

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
    """What the threads of one run have in common. It serves again when all helpers that were called have come."""

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
        self._turns: list[_Turn] = []

    def run(self, table: Array, foreign: bool, /) -> Outcome:
        """Runs all steps in their order."""
        if foreign:
            return self._forked(table)
        turn = self._turn()
        self._helpers.start()
        turn.awaited = list(range(1, self.threads))
        try:
            for thread in range(1, self.threads):
                self._helpers.submit(_Help(table, turn), thread)
            run_part()(table, turn.state, self.threads)
        finally:
            turn.state[OVER // 8] = 1  # where an interrupt came first, nobody may wait for this thread
        self._turns.append(turn)
        return int(turn.state[FAILED // 8]), int(turn.state[STATUS // 8])

    def _turn(self) -> _Turn:
        """One that all its helpers have left, else a new one."""
        for number, turn in enumerate(self._turns):
            if not turn.awaited:
                clear(self._turns.pop(number).state)
                return turn
        return _Turn()

    def _forked(self, table: Array) -> Outcome:
        library = np.array((*team_addresses(), region(), self.threads), np.int64)
        return run_forked()(table, library)


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
    """Whoever runs programs on so many threads."""
    return Team(threads) if threads > 1 else ALONE
