"""Helper threads: made at first use, without cost while idle, ended with their owner.

concurrent.futures is not used: an interrupt of the caller inside `submit` may leave the locks of its pool held for
ever. Here, the caller uses only a queue in C during a run, which an interrupt cannot leave half-changed.
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
    """A group of at most `count` threads. A forked process makes new ones."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._process = -1
        self._jobs = Jobs()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Makes the missing threads; fewer where the system has no more."""
        if self._process != os.getpid():
            self._jobs, self._threads, self._process = Jobs(), [], os.getpid()
            weakref.finalize(self, _dismiss, self._jobs, self.count).atexit = False
        while len(self._threads) < self.count:
            # Daemons do not delay an exit. A thread whose start is interrupted may be lost; the others do its work.
            self._threads.append(Thread(target=_serve, args=(self._jobs,), name="arenaplan", daemon=True))
            try:
                self._threads[-1].start()
            except RuntimeError:
                continue

    def submit(self, job: Callable[[int], None], thread: int) -> None:
        """Lets one of the threads call job(thread)."""
        self._jobs.put((job, thread))


def _serve(jobs: Jobs) -> None:
    while True:
        job, thread = jobs.get()
        if thread == _LEAVE:
            return
        job(thread)
        del job  # an idle thread keeps no memory of the last run alive


def _dismiss(jobs: Jobs, count: int) -> None:
    for _ in range(count):
        jobs.put((_nothing, _LEAVE))


def _nothing(_: int) -> None:
    """Does nothing: the job of a thread that ends."""
