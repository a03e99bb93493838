"""Threads that help the caller's: made at first use, idle at no cost, gone with their owner.

No concurrent.futures: an interrupt of the caller inside `submit` may leave the locks of its pool held for ever. Here,
what the caller touches during a run is a queue in C, which an interrupt cannot cut in two.
"""

import os
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

Job = tuple[Callable[[int], None], int]
Jobs = SimpleQueue[Job]
_LEAVE = -1


class Helpers:
    """At most `count` threads. A process that was forked makes new ones."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._process = -1
        self._jobs = Jobs()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Makes the threads, where they are not there. It does with fewer where the system has no more."""
        if self._process != os.getpid():
            self._jobs, self._threads, self._process = Jobs(), [], os.getpid()
            weakref.finalize(self, _dismiss, self._jobs, self.count).atexit = False
        while len(self._threads) < self.count:
            # Daemons hold up no exit. One whose start is interrupted may be lost; the others do its work.
            self._threads.append(Thread(target=_serve, args=(self._jobs,), name="arenaplan", daemon=True))
            try:
                self._threads[-1].start()
            except RuntimeError:
                continue

    def submit(self, job: Callable[[int], None], thread: int) -> None:
        """Lets one of them call job(thread), soon or late."""
        self._jobs.put((job, thread))


def _serve(jobs: Jobs) -> None:
    while True:
        job, thread = jobs.get()
        if thread == _LEAVE:
            return
        job(thread)
        del job  # an idle thread holds nothing of the last run


def _dismiss(jobs: Jobs, count: int) -> None:
    for _ in range(count):
        jobs.put((_nothing, _LEAVE))


def _nothing(_: int) -> None:
    """The job of who leaves."""
