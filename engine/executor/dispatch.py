"""One run of an agenda by several threads. It knows thunks and ranks, no plan.

The caller's thread works too, and never waits for a helper that has not begun: a late helper costs time only. A thread
that takes a call while others are ready wakes one more thread, which may wake the next; a chain of calls wakes no
thread.

Some nodes may be copies, which have a thread of their own beside those: so none that computes waits for a copy that it
does not read. They take one only as long as the thread of copies has not begun.
"""

from collections.abc import Callable, Collection, Sequence
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
class _Lane:
    """The nodes that some threads share: `ready` ones, the most urgent first.

    `asleep` has threads that wait for more; those from `started` to `end` have not been started. `awaited` counts
    threads that were woken or started and have not come yet; `has_come` says whether one has.
    """

    ready: list[int]
    started: int
    end: int
    asleep: list[int] = field(factory=list)
    awaited: int = 0
    has_come: bool = False


@define(eq=False)
class Dispatch:
    """The state of one run; a helper that comes late leaves at once. `thunks` are by rank; `submit` starts a helper.

    `copies` are the ranks for the thread behind the `threads` that compute; there is none where there are no copies.

    It uses locks and no condition variables: an interrupt may come between any two instructions of the caller's thread,
    and must leave no lock held and no thread asleep. `_doors` are closed locks, one for each thread: an idle thread
    waits at its own. `_busy` counts helpers that came.
    """

    agenda: Agenda
    thunks: Sequence[Thunk]
    threads: int
    submit: Submit
    copies: Collection[int] = ()
    failures: list[tuple[int, BaseException]] = field(factory=list)
    _lock: Any = field(init=False, factory=Lock)
    _doors: tuple[Any, ...] = field(init=False)
    _quiet: Any = field(init=False, factory=_closed)
    _busy: int = field(init=False, default=0)
    _lanes: tuple[_Lane, _Lane] = field(init=False)
    _waits: list[int] = field(init=False)
    _left: int = field(init=False)
    _over: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        end = self.threads + bool(self.copies)
        self._doors = tuple(_closed() for _ in range(end))
        copying, computing = ([r for r in self.agenda.first if (r in self.copies) is way] for way in (True, False))
        self._lanes = _Lane(computing, 1, self.threads), _Lane(copying, self.threads, end)
        self._waits = list(self.agenda.waits)
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
            lane = self._lane(thread)
            lane.awaited -= 1
            lane.has_come = True
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
            lane = self._lane(thread)
            if last >= 0:
                self._complete(last)
            elif last == _ASLEEP:
                lane.awaited -= 1
            if self._over:
                return _OVER
            rank = self._next(lane)
            for other in self._lanes:
                if len(other.ready) > other.awaited:
                    self._wake(other)
            if rank == _ASLEEP:
                lane.asleep.append(thread)
            return rank

    def _lane(self, thread: int) -> _Lane:
        return self._lanes[thread >= self.threads]

    def _next(self, lane: _Lane) -> int:
        """Takes what is most urgent for a thread of a lane; _ASLEEP where nothing is ready for it."""
        computing, copying = self._lanes
        if lane is computing and not lane.ready and not copying.has_come:
            lane = copying
        return heappop(lane.ready) if lane.ready else _ASLEEP

    def _complete(self, done: int) -> None:
        waits = self._waits
        for rank in self.agenda.followers[done]:
            waits[rank] -= 1
            if not waits[rank]:
                heappush(self._lanes[rank in self.copies].ready, rank)
        self._left -= 1
        if not self._left:
            self._finish()

    def _wake(self, lane: _Lane) -> None:
        """Wakes one more thread of a lane: a sleeping one, else one that has not begun."""
        if lane.asleep:
            lane.awaited += 1
            self._doors[lane.asleep.pop()].release()
        elif lane.started < lane.end:
            lane.started += 1
            lane.awaited += 1
            self.submit(self.help, lane.started - 1)

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
