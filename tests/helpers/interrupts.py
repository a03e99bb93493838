"""Runs that are interrupted at some moment, how long the interrupt takes to come through, and whether it did harm."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import frozen

import engine
import ops
from engine.api import Executable
from ops.tensor.spec import Array

NOT_SENT = -1.0
DELAY = 0.1
"""Seconds of CPU time of each of at most two threads that may pass between the signal and the exception."""
_LONG, _SHORT = 4096, 64
"""Rows of 1,024 numbers: those of a long run, and of one whose calls do not run as one program."""
_COLUMNS = 1024
MODES: Mapping[str, tuple[Mapping[str, Any], int]] = MappingProxyType(
    {
        "alone": ({"threads": 1}, _LONG),
        "static": ({"threads": 2}, _LONG),
        "staged": ({}, _LONG),
        "dynamic": ({"mode": "dynamic"}, _SHORT),
        "poison": ({"debug": "poison"}, _SHORT),
        "exact": ({"parallel": "exact", "threads": 2}, _SHORT),
        "levels": ({"parallel": "levels", "threads": 2}, _SHORT),
        "edges": ({"parallel": "edges", "threads": 2}, _SHORT),
    }
)
"""The options of each way to run, and the rows of its network."""


@contextmanager
def python_handles_interrupts() -> Iterator[None]:
    """Sets Python's own handler of SIGINT, which a process that a shell starts in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def delay_of_interrupt(run: Callable[[], object], moment: float) -> float:
    """Runs until an interrupt ends it, which is sent after so many seconds of the process's CPU time.

    Returns the seconds of CPU time from the signal to the KeyboardInterrupt; NOT_SENT where the run ended before.
    CPU time, because other processes make a machine slow. Lists tell the thread what happens: an interrupt inside a
    method of an Event leaves its lock held for ever.
    """
    sent, over = list[float](), list[bool]()

    def send() -> None:
        until = time.process_time() + moment
        while time.process_time() < until:
            time.sleep(0.0005)
            if over:
                return
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        run()
        over.append(True)
        sender.join()
        time.sleep(0)  # a signal that was sent at the end is handled here
    except KeyboardInterrupt:
        return time.process_time() - sent[0]
    finally:
        over.append(True)
        sender.join()
    return NOT_SENT


@frozen(eq=False)
class Interrupted:
    """An executable with feeds, what it gives for them, and the seconds of CPU time that a run takes."""

    executable: Executable
    feeds: Mapping[str, Array]
    wanted: Array
    seconds: float

    def delay(self, share: float) -> float:
        """Interrupts a run after this share of its time, and returns the delay; NOT_SENT where it ended before."""
        return delay_of_interrupt(lambda: self.executable.run(self.feeds), share * self.seconds)

    def is_as_before(self) -> bool:
        """Runs once more, and returns whether the result is the same."""
        return np.array_equal(self.executable.run(self.feeds)["y"], self.wanted)


@cache
def interrupted(mode: str) -> Interrupted:
    """Compiles the network of one of MODES."""
    options, rows = MODES[mode]
    executable = engine.compile(_network("rows" if mode == "staged" else rows), optimise=0, **options)
    feeds = {"x": np.random.default_rng(0).standard_normal((rows, _COLUMNS)).astype(np.float32)}
    wanted = executable.run(feeds)["y"].copy()
    begin = time.process_time()
    executable.run(feeds)
    return Interrupted(executable, feeds, wanted, time.process_time() - begin)


def _network(rows: int | str) -> engine.Graph:
    """Two branches of 60 functions each. One function takes a few milliseconds where it has 4 million numbers."""
    graph = engine.Graph("branches")
    one = two = graph.input("x", (rows, _COLUMNS))
    for _ in range(60):
        one, two = ops.tanh(one), ops.erf(two)
    graph.output(ops.add(one, two), "y")
    return graph
