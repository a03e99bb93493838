"""Compiled calls that follow each other as one program, which runs without Python in between."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from attrs import frozen

from engine.executor.binding import ProgramError
from engine.executor.team import ALONE, Runner
from engine.lower.calls import Call
from engine.lower.costs import call_cost
from ops.common.thunks import nothing
from ops.native.call import FOREIGN, Native
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

_LEAST_WORK = 2_000_000
"""Operations and bytes below which waking a thread takes longer than it helps."""


@frozen(eq=False)
class Program:
    """Thunk of several calls. Raises ProgramError telling the one whose library, or check, refused."""

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
    """The same work as fewer thunks, each with the first of its calls."""
    found = list(_joined(calls, thunks, runner))
    return [call for call, _ in found], [thunk for _, thunk in found]


def as_program(call: Call, thunk: Thunk, runner: Runner, least: int = _LEAST_WORK) -> Thunk:
    """The thunk of one call, run by that runner where it is compiled, and no less than so much work."""
    return _program([call], [thunk], runner, least) if isinstance(thunk, Native) else thunk


def _joined(calls: Sequence[Call], thunks: Sequence[Thunk], runner: Runner) -> Iterator[tuple[Call, Thunk]]:
    pairs = [(call, thunk) for call, thunk in zip(calls, thunks, strict=True) if thunk is not nothing]
    for native, group in groupby(pairs, lambda pair: isinstance(pair[1], Native)):
        some = list(group)
        if native:
            yield some[0][0], _program([c for c, _ in some], [t for _, t in some if isinstance(t, Native)], runner)
        else:
            yield from some


def _program(calls: Sequence[Call], natives: Sequence[Native], runner: Runner, least: int = _LEAST_WORK) -> Program:
    table = np.concatenate([native.table for native in natives])
    foreign = any(step.kind == FOREIGN for native in natives for step in native.steps)
    enough = foreign or sum(map(call_cost, calls)) >= least
    return Program(runner if enough else ALONE, table, foreign, tuple(calls), tuple(natives))
