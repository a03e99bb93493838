"""Program to lifetimes: when each value is first and last needed (MegEngine's static memory planning, step 3)."""

from attrs import define, field, frozen

from allocator.errors import ProblemError
from allocator.problem import Column, column
from allocator.steps import Program, Step

_UNKNOWN = -1


@frozen(eq=False)
class Lifetimes:
    """Value i lives in the ticks [begin[i], end[i])."""

    begin: Column = field(converter=column)
    end: Column = field(converter=column)


def lifetimes(program: Program) -> Lifetimes:
    """Derives lifetimes: from the step that writes or views a value to one past its last reader, one tick at least.

    Raises ProblemError where a step reads, views or overwrites what is not there; for a value written twice or never.
    """
    scan = _Scan([_UNKNOWN] * len(program.sizes), [_UNKNOWN] * len(program.sizes))
    for tick, step in enumerate(program.steps):
        scan.step(tick, step)
    for value, begin in enumerate(scan.begin):
        if begin == _UNKNOWN:
            raise ProblemError(f"value {value} is never written")
        if program.sizes[value] < 0:
            raise ProblemError(f"value {value} has a negative size: {program.sizes[value]} bytes")
    return Lifetimes(scan.begin, scan.end)


@define(eq=False)
class _Scan:
    begin: list[int]
    end: list[int]

    def step(self, tick: int, step: Step) -> None:
        for value in step.reads:
            self._require_written(tick, value, "reads")
            self.end[value] = tick + 1
        for value in step.writes:
            self._start(tick, value)
        for view in step.views:
            self._require_written(tick, view.src, "views")
            self._start(tick, view.out)
        for overwrite in step.overwrites:
            if overwrite.out not in step.writes or overwrite.src not in step.reads:
                raise ProblemError(
                    f"step {tick} lets value {overwrite.out} overwrite value {overwrite.src}, "
                    "but does not write the one and read the other"
                )

    def _require_known(self, tick: int, value: int) -> None:
        if not 0 <= value < len(self.begin):
            raise ProblemError(f"step {tick} names value {value}, but there are {len(self.begin)} values")

    def _require_written(self, tick: int, value: int, verb: str) -> None:
        self._require_known(tick, value)
        if self.begin[value] == _UNKNOWN:
            raise ProblemError(f"step {tick} {verb} value {value} before it is written")

    def _start(self, tick: int, value: int) -> None:
        self._require_known(tick, value)
        if self.begin[value] != _UNKNOWN:
            raise ProblemError(f"step {tick} writes value {value}, which step {self.begin[value]} has written")
        self.begin[value] = tick
        self.end[value] = tick + 1
