"""Ctrl-C while a network runs comes through within 100 ms in every mode, and the executable is as good as before."""

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.api import Executable
from tests.helpers.interrupts import NOT_SENT, delay_of_interrupt, python_handles_interrupts

DELAY = 0.1
"""Seconds of CPU time of each of at most two threads that may pass between the signal and the exception."""
LONG, SHORT = 4096, 64
"""Rows of 1,024 numbers: those of a long run, and of one whose calls do not run as one program."""
MODES: dict[str, tuple[dict[str, Any], int]] = {
    "alone": ({"threads": 1}, LONG),
    "static": ({"threads": 2}, LONG),
    "staged": ({}, LONG),
    "dynamic": ({"mode": "dynamic"}, SHORT),
    "poison": ({"debug": "poison"}, SHORT),
    "exact": ({"parallel": "exact", "threads": 2}, SHORT),
    "levels": ({"parallel": "levels", "threads": 2}, SHORT),
    "edges": ({"parallel": "edges", "threads": 2}, SHORT),
}
COLUMNS = 1024


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    with python_handles_interrupts():
        yield


def _network(rows: int | str) -> engine.Graph:
    """Two branches of 60 functions each. One function takes a few milliseconds where it has 4 million numbers."""
    graph = engine.Graph("branches")
    one = two = graph.input("x", (rows, COLUMNS))
    for _ in range(60):
        one, two = ops.tanh(one), ops.erf(two)
    graph.output(ops.add(one, two), "y")
    return graph


class _Interrupted:
    """An executable that is interrupted at random moments, and compared with what it gave before."""

    def __init__(self, mode: str, seed: int) -> None:
        options, rows = MODES[mode]
        self.exe: Executable = engine.compile(_network("rows" if mode == "staged" else rows), optimise=0, **options)
        self.feeds = {"x": np.random.default_rng(0).standard_normal((rows, COLUMNS)).astype(np.float32)}
        self.random = random.Random(seed)
        self.wanted = self.exe.run(self.feeds)["y"].copy()
        begin = time.process_time()
        self.exe.run(self.feeds)
        self.seconds = time.process_time() - begin

    def at_moments(self, count: int) -> list[float]:
        """Returns the delays of so many interrupts. Checks the outputs after each."""
        delays = list[float]()
        while len(delays) < count:
            moment = self.random.uniform(0, self.seconds)
            delay = delay_of_interrupt(lambda: self.exe.run(self.feeds), moment)
            if delay != NOT_SENT:
                delays.append(delay)
            np.testing.assert_array_equal(self.exe.run(self.feeds)["y"], self.wanted)
        return delays


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_comes_through_in_every_mode_and_harms_nothing(mode: str) -> None:
    network = _Interrupted(mode, seed=1)
    assert max(network.at_moments(6)) <= 2 * DELAY


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_interrupts_come_through_and_harm_nothing(mode: str) -> None:
    network = _Interrupted(mode, seed=2)
    assert max(network.at_moments(1 + 1000 // len(MODES))) <= 2 * DELAY
