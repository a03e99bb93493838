"""One run of an agenda by several threads. It knows thunks and ranks, no plan.

The caller's thread works too, and never waits for a helper that has not begun: a late helper costs time only. A thread
that takes a call while others are ready wakes one more thread, which may wake the next; a chain of calls wakes no
thread.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from threading import Lock
from typing import Any

from attrs import define, field

from engine.executor.agenda import Agenda
from engine.executor.binding import kernel_state
from ops.schema.schema import Thunk

CALLER = 0
"""The caller's number among the threads."""
_NOTHING, _OVER, _ASLEEP = -1, -1, -2
Submit = Callable[[Callable[[int], None], int], object]


def _closed() -> Any:
    lock = Lock()
    lock.acquire()
    return lock


@define(eq=False)
class Dispatch:
    """The state of one run; a helper that comes late leaves at once. `thunks` are by rank; `submit` starts a helper.

    It uses locks and no condition variables: an interrupt may come between any two instructions of the caller's thread,
    and must leave no lock held and no thread asleep. `_doors` are closed locks, one for each thread: an idle thread
    waits at its own. `_awaited` counts threads that were woken or started and have not come yet; `_busy` counts helpers
    that came.
    """

    agenda: Agenda
    thunks: Sequence[Thunk]
    threads: int
    submit: Submit
    failures: list[tuple[int, BaseException]] = field(factory=list)
    _lock: Any = field(init=False, factory=Lock)
    _doors: tuple[Any, ...] = field(init=False)
    _quiet: Any = field(init=False, factory=_closed)
    _asleep: list[int] = field(init=False, factory=list)
    _started: int = field(init=False, default=1)
    _awaited: int = field(init=False, default=0)
    _busy: int = field(init=False, default=0)
    _ready: list[int] = field(init=False)
    _waits: list[int] = field(init=False)
    _left: int = field(init=False)
    _over: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._doors = tuple(_closed() for _ in range(self.threads))
        self._ready, self._waits = list(self.agenda.first), list(self.agenda.waits)
        self._left = len(self.thunks)
        self._over = not self.thunks

    def run(self) -> None:
        """Runs the caller's part. At its end no thread is inside a thunk; `failures` has the errors, by rank."""
        try:
            self._work(CALLER)
            if self.failures:
                self._await_helpers()
        except BaseException:
            self._stop()
            raise

    def help(self, thread: int) -> None:
        """Runs the part of a helper."""
        with self._lock:
            self._awaited -= 1
            if self._over:
                return
            self._busy += 1
        try:
            self._work(thread)
        finally:
            with self._lock:
                self._busy -= 1
                if self._over and not self._busy:
                    self._quiet.release()

    def _work(self, thread: int) -> None:
        rank, thunks, door = _NOTHING, self.thunks, self._doors[thread]
        try:
            with kernel_state():
                while (rank := self._take(rank, thread)) != _OVER:
                    if rank == _ASLEEP:
                        door.acquire()
                    else:
                        thunks[rank]()
        except BaseException as error:  # of any kind: no thread may wait for this one in vain
            with self._lock:
                self.failures.append((rank, error))
                self._finish()

    def _take(self, last: int, thread: int) -> int:
        """Returns the most urgent ready call; completes `last`, unless the thread was asleep."""
        with self._lock:
            if last >= 0:
                self._complete(last)
            elif last == _ASLEEP:
                self._awaited -= 1
            if self._over:
                return _OVER
            if not self._ready:
                self._asleep.append(thread)
                return _ASLEEP
            rank = heappop(self._ready)
            if len(self._ready) > self._awaited:
                self._wake()
            return rank

    def _complete(self, done: int) -> None:
        waits, ready = self._waits, self._ready
        for rank in self.agenda.followers[done]:
            waits[rank] -= 1
            if not waits[rank]:
                heappush(ready, rank)
        self._left -= 1
        if not self._left:
            self._finish()

    def _wake(self) -> None:
        """Wakes one more thread: a sleeping one, else one that has not begun."""
        if self._asleep:
            self._awaited += 1
            self._doors[self._asleep.pop()].release()
        elif self._started < self.threads:
            self._started += 1
            self._awaited += 1
            self.submit(self.help, self._started - 1)

    def _finish(self) -> None:
        """Ends the run. Opens every door, also one whose thread an interrupted `_wake` took off the list."""
        self._over = True
        for door in self._doors:
            if door.locked():
                door.release()

    def _await_helpers(self) -> None:
        """Waits until no helper is inside a thunk. None begins after the end, so `_quiet` is opened at most once."""
        with self._lock:
            busy = self._busy
        if busy:
            self._quiet.acquire()

    def _stop(self) -> None:
        """Ends the run after an interrupt, even if more of them come:

        helpers must not write into memory that is reused.
        """
        while True:
            try:
                with self._lock:
                    self._finish()
                return self._await_helpers()
            except BaseException:  # the first interrupt is already being raised
                continue
