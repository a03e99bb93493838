"""Times and threads of the calls of a run."""

import time
from collections.abc import Sequence
from threading import get_ident

from attrs import define, field, frozen

from ops.schema.schema import Thunk


@frozen(eq=False)
class Timing:
    """The begin and the end of a call, in seconds from the start of the run. Thread 0 is the caller's.

    Other threads have numbers in order of their first call.
    """

    tick: int
    thread: int
    begin: float
    end: float


@define(eq=False)
class Stopwatch:
    """Measures thunks, from its construction on. Any number of threads may call them."""

    caller: int = field(factory=get_ident)
    start: float = field(factory=time.perf_counter)
    taken: list[tuple[int, int, float, float]] = field(factory=list)

    def around(self, tick: int, thunk: Thunk) -> Thunk:
        """Returns the thunk with its time measured. One that fails leaves no time."""
        clock, taken = time.perf_counter, self.taken

        def run() -> None:
            begin = clock()
            thunk()
            taken.append((tick, get_ident(), begin, clock()))

        return run

    def timings(self) -> tuple[Timing, ...]:
        """Returns the timings of all calls so far, in order of their begin."""
        rows = sorted(self.taken, key=lambda row: row[2])
        numbers = _numbers([self.caller, *(thread for _, thread, _, _ in rows)])
        return tuple(Timing(t, numbers[thread], begin - self.start, end - self.start) for t, thread, begin, end in rows)


def _numbers(threads: Sequence[int]) -> dict[int, int]:
    return {thread: number for number, thread in enumerate(dict.fromkeys(threads))}
