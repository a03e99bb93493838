"""A planted fault: one line of the project gone wrong, and the judge that is there to see it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from attrs import frozen

from allocator.errors import BoundError, PlanError, ProblemError
from engine.text.errors import (
    DataFlowError,
    HandoverError,
    JudgeError,
    PassError,
    PlacementError,
    PlanRefusedError,
    PoisonError,
    RaceError,
    ScheduleError,
)
from tests.helpers.paths import ROOT

Plant = Callable[[pytest.MonkeyPatch], None]
"""Puts the fault in; the patch takes it out."""
Work = Callable[[], object]
"""What runs into the fault. Without it, nothing is refused."""


@frozen
class Judge:
    """Who refuses: an error of that class, which is raised in one of these files."""

    name: str
    error: tuple[type[Exception], ...]
    files: tuple[str, ...]

    def has_spoken(self, error: BaseException) -> bool:
        """Returns whether this judge raised the error, or one that it comes from."""
        return any(isinstance(e, self.error) and not self.files_of(e).isdisjoint(self.files) for e in _causes(error))

    @staticmethod
    def files_of(error: BaseException) -> set[str]:
        """Returns the files of the project that the error came through."""
        return {_path(frame) for frame in _frames(error.__traceback__)}


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _path(frame: TracebackType) -> str:
    path = Path(frame.tb_frame.f_code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


PROBLEM = Judge("the constructor of problems", (ProblemError,), ("allocator/problem.py",))
OFFSETS = Judge("the judge of offsets", (PlanError,), ("allocator/solvers/__init__.py",))
BOUNDS = Judge("the judge of bounds", (BoundError,), ("allocator/solvers/__init__.py",))
PLACEMENT = Judge("the judge of places", (PlacementError,), ("engine/check/placement.py",))
MEMORIES = Judge("the judge of memories", (PlacementError,), ("engine/check/memories.py",))
DATA_FLOW = Judge("the judge of data flow", (DataFlowError,), ("engine/check/data_flow.py",))
RACES = Judge("the judge of races", (RaceError, ScheduleError), ("engine/check/races.py",))
HANDOVER = Judge("the judge between two stages", (HandoverError,), ("engine/check/handover.py",))
OVERLAPS = Judge("the judge of reused plans", (DataFlowError, PlacementError), ("engine/check/overlaps.py",))
SAVED = Judge("the reader of saved plans", (PlanRefusedError,), ("engine/saved/replay.py",))
AGAIN = Judge("the judge of what runs again", (PassError,), ("engine/remat/check.py",))
FORM = Judge("judge 0", (PassError,), ("engine/passes/verify.py", "engine/passes/verify_lengths.py"))
VALUES = Judge("the judge of values", (PassError,), ("engine/passes/values.py",))
POISON = Judge("the watched run", (PoisonError,), ("engine/executor/poison.py", "engine/executor/apart.py"))
MODES = Judge("the comparison of all ways to run", (AssertionError,), ("tests/helpers/graphs/unplanned_run.py",))
KERNELS = Judge("the comparison of kernels with numpy's", (AssertionError,), ("tests/helpers/ops/kernel_checks.py",))
JUDGES = (
    *(PROBLEM, OFFSETS, BOUNDS, PLACEMENT, MEMORIES, DATA_FLOW, RACES, HANDOVER, OVERLAPS, SAVED, AGAIN, FORM, VALUES),
    *(POISON, MODES, KERNELS),
)
REFUSALS = (JudgeError, PlanError, ProblemError, PlanRefusedError, AssertionError)


@frozen(eq=False)
class Fault:
    """One row of the table: what is wrong, the file with the line, who must see it, how it is put in, what runs."""

    name: str
    where: str
    judge: Judge
    plant: Plant
    work: Work


def patched(target: Any, name: str, change: Callable[[Any], Any]) -> Plant:
    """Returns what puts `change` of an attribute in its place."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, name, change(getattr(target, name)))

    return plant


def both(*plants: Plant) -> Plant:
    """Returns what puts several in: one fault that stands in two places."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for each in plants:
            each(patch)

    return plant


def constant(value: Any) -> Callable[[Any], Callable[..., Any]]:
    """Returns a change to a function that always returns the value."""
    return lambda _: lambda *_, **__: value


def after(change: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Returns a change to a function: `change` gets its result, and then its arguments."""
    return lambda right: lambda *args, **kwargs: change(right(*args, **kwargs), *args)
