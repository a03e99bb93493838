"""Consecutive compiled calls joined to one program, which runs without Python in between."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from attrs import frozen

from engine.executor.binding import ProgramError
from engine.executor.team import ALONE, Runner
from engine.lower.calls import Call
from engine.lower.costs import call_cost
from ops.common.thunks import nothing
from ops.native.call import Native
from ops.native.runners import FOREIGN
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

_LEAST_WORK = 2_000_000
"""Operations and bytes below which one thread runs a program: waking others takes longer than they save.

`tools/bench_parallel.py` compares numbers of threads.
"""


@frozen(eq=False)
class CallProgram:
    """The thunk of several calls. Raises ProgramError with the call whose library or check failed."""

    runner: Runner
    table: Array
    foreign: bool
    calls: tuple[Call, ...]
    natives: tuple[Native, ...]

    def __call__(self) -> None:
        """Runs all of them."""
        failed, status = self.runner.run(self.table, self.foreign)
        if failed >= 0:
            ends = np.cumsum([len(native.steps) for native in self.natives])
            call = self.calls[int(np.searchsorted(ends, failed, side="right"))]
            steps = [step for native in self.natives for step in native.steps]
            raise ProgramError(call, steps[failed].explain(status))


def join_calls(calls: Sequence[Call], thunks: Sequence[Thunk], runner: Runner) -> tuple[list[Call], list[Thunk]]:
    """Returns the same work as fewer thunks, each with the first of its calls."""
    pairs = list(_joined(calls, thunks, runner))
    return [call for call, _ in pairs], [thunk for _, thunk in pairs]


def as_program(call: Call, thunk: Thunk, runner: Runner, least: int = _LEAST_WORK) -> Thunk:
    """Returns the thunk of one call as a program of that runner, where it is compiled and has at least so much work."""
    return _program([call], [thunk], runner, least) if isinstance(thunk, Native) else thunk


def _joined(calls: Sequence[Call], thunks: Sequence[Thunk], runner: Runner) -> Iterator[tuple[Call, Thunk]]:
    pairs = [(call, thunk) for call, thunk in zip(calls, thunks, strict=True) if thunk is not nothing]
    for _, group in groupby(pairs, lambda pair: isinstance(pair[1], Native)):
        members = list(group)
        natives = [thunk for _, thunk in members if isinstance(thunk, Native)]
        if natives:
            yield (
                members[0][0],
                _program([c for c, _ in members], natives, runner),
            )
        else:
            yield from members


def _program(calls: Sequence[Call], natives: Sequence[Native], runner: Runner, least: int = _LEAST_WORK) -> CallProgram:
    table = np.concatenate([native.table for native in natives])
    foreign = any(step.kind == FOREIGN for native in natives for step in native.steps)
    enough = foreign or sum(map(call_cost, calls)) >= least
    return CallProgram(runner if enough else ALONE, table, foreign, tuple(calls), tuple(natives))


@frozen(eq=False)
class StepTable:
    """The thunk of steps of which some belong to calls that may fail: `fallible` has their rows, calls and steps.

    `kept` is what the steps point to. Raises ProgramError as a CallProgram.
    """

    runner: Runner
    table: Array
    foreign: bool
    fallible: tuple[tuple[int, Call, Native], ...]
    kept: object

    def __call__(self) -> None:
        """Runs all of them."""
        failed, status = self.runner.run(self.table, self.foreign)
        if failed >= 0:
            row, call, native = next(block for block in reversed(self.fallible) if block[0] <= failed)
            raise ProgramError(call, native.steps[failed - row].explain(status))


def step_table(
    runner: Runner, tables: Sequence[Array], cost: int, fallible: Sequence[tuple[int, Call, Native]], kept: object
) -> StepTable:
    """Returns the thunk of tables of steps, one behind the other, with so much work in all."""
    foreign = any(step.kind == FOREIGN for _, _, native in fallible for step in native.steps)
    enough = foreign or cost >= _LEAST_WORK
    return StepTable(runner if enough else ALONE, np.concatenate(tables), foreign, tuple(fallible), kept)
