"""When each call of a run ran, and on which thread."""

import time
from collections.abc import Sequence
from threading import get_ident

from attrs import define, field, frozen

from ops.schema.schema import Thunk


@frozen(eq=False)
class Timing:
    """One call: seconds from the start of the run. Thread 0 is the caller's; others count on as they come."""

    tick: int
    thread: int
    begin: float
    end: float


@define(eq=False)
class Stopwatch:
    """Takes the time of thunks; it runs from when it is made. Any number of threads may call them."""

    caller: int = field(factory=get_ident)
    start: float = field(factory=time.perf_counter)
    taken: list[tuple[int, int, float, float]] = field(factory=list)

    def around(self, tick: int, thunk: Thunk) -> Thunk:
        """The same thunk, timed. One that fails leaves no time."""
        clock, taken = time.perf_counter, self.taken

        def run() -> None:
            begin = clock()
            thunk()
            taken.append((tick, get_ident(), begin, clock()))

        return run

    def timings(self) -> tuple[Timing, ...]:
        """All calls that were taken, by when they began."""
        rows = sorted(self.taken, key=lambda row: row[2])
        numbers = _numbers([self.caller, *(thread for _, thread, _, _ in rows)])
        return tuple(Timing(t, numbers[thread], begin - self.start, end - self.start) for t, thread, begin, end in rows)


def _numbers(threads: Sequence[int]) -> dict[int, int]:
    return {thread: number for number, thread in enumerate(dict.fromkeys(threads))}
