"""Processes of this machine: each worker is a pool of one process, so that a death is known to be of one task's making.

A pool of `concurrent.futures` is broken for good when a process of it dies, with all tasks that it had. Pools of one
process each confine that. Processes are spawned: a forked copy of a process with threads may lock up.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from attrs import define, field

from engine.system.threads import cpus
from engine.workers.board import Board, folder_board
from engine.workers.place import WorkerError
from engine.workers.serve import begin

TRIES = 3
"""How often a task may end its worker before it is given up."""
_EACH = 2
"""Tasks that one worker has: one that runs, and one that waits."""


@define(eq=False)
class _Worker:
    """A pool of one process. The process lives as long as this end of `life` is open."""

    pool: ProcessPoolExecutor
    life: Connection
    tasks: deque["Future[Any]"] = field(factory=deque)

    @property
    def unfinished(self) -> int:
        """Returns how many of its tasks have not ended, and forgets those that ended well."""
        while self.tasks and self.tasks[0].done() and not _died(self.tasks[0]):
            self.tasks.popleft()
        return len(self.tasks)

    def end(self, *, now: bool) -> None:
        """Ends the process: when its tasks are done, or now."""
        if now:
            self.life.close()
        self.pool.shutdown(wait=not now, cancel_futures=now)
        self.life.close()


def _new_worker() -> _Worker:
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=begin, initargs=(theirs,))
    return _Worker(pool, ours)


def _died(future: "Future[Any]") -> bool:
    return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


@define(eq=False)
class Processes:
    """A fixed number of worker processes; one that dies is replaced, and its task is tried again elsewhere."""

    workers: int = field(factory=cpus)
    _all: list[_Worker | None] = field(init=False)
    _blameless: set["Future[Any]"] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._all = [None] * self.workers

    @property
    def room(self) -> int:
        """Returns two for each worker: one task that runs, and one that waits."""
        return _EACH * self.workers

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Sends a task to the worker that has the fewest. A worker that has died is replaced."""
        place = min(range(self.workers), key=self._load)
        worker = self._living(place)
        try:
            future = worker.pool.submit(function, *arguments)
        except BrokenProcessPool:  # it died between two tasks
            self._bury(place)
            worker = self._living(place)
            future = worker.pool.submit(function, *arguments)
        worker.tasks.append(future)
        return future

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:
        """Returns the task's error; None where its worker died and it is tried again."""
        error = future.exception()
        if not isinstance(error, BrokenProcessPool):
            return error
        if tries < TRIES:
            return None
        return WorkerError(f"the process that worked on it ended {tries} times: killed, or out of memory")

    def is_blameless(self, future: "Future[Any]") -> bool:
        """Returns whether the task was still waiting when its worker died."""
        if not _died(future):
            return False
        for place, worker in enumerate(self._all):
            if worker is not None and future in worker.tasks:
                self._bury(place)
        waited = future in self._blameless
        self._blameless.discard(future)
        return waited

    def board(self) -> AbstractContextManager[Board]:
        """Returns a board in a folder of this machine."""
        return folder_board()

    def close(self, *, now: bool = False) -> None:
        """Ends all workers."""
        for worker in self._all:
            if worker is not None:
                worker.end(now=now)
        self._all = [None] * self.workers

    def _load(self, place: int) -> int:
        worker = self._all[place]
        return 0 if worker is None else worker.unfinished

    def _living(self, place: int) -> _Worker:
        worker = self._all[place]
        if worker is not None and worker.tasks and _died(worker.tasks[0]):
            self._bury(place)
            worker = None
        if worker is None:
            worker = self._all[place] = _new_worker()
        return worker

    def _bury(self, place: int) -> None:
        """Forgets a worker that died. Its tasks ran in turn, so those behind the first had not begun."""
        worker, self._all[place] = self._all[place], None
        if worker is not None:
            dead = [future for future in worker.tasks if _died(future)]
            self._blameless.update(dead[1:])
            worker.end(now=True)
