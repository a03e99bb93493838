"""Runs that are interrupted at random moments, in every mode: 100 ms at most, and as good as before."""

from pathlib import Path

import numpy as np

from tests.fuzz.base import STOPPED, Kind, Tried, WrongError, seed_text
from tests.helpers.interrupts import DELAY, MODES, NOT_SENT, interrupted, python_handles_interrupts


def attempt(path: Path) -> Tried:
    """Interrupts a run in one of the modes, then runs again."""
    rng = np.random.default_rng(int(path.read_text()))
    mode = tuple(MODES)[rng.integers(len(MODES))]
    network = interrupted(mode)
    with python_handles_interrupts():
        delay = network.delay(rng.random())
    if delay > 2 * DELAY:
        raise WrongError(f"{mode}: an interrupt came through after {delay:.3f} s of two threads")
    if not network.is_as_before():
        raise WrongError(f"{mode}: the run after an interrupt gives another result")
    return Tried("ended before" if delay == NOT_SENT else mode)


INTERRUPTS = Kind("interrupts", STOPPED, "seed", seed_text, attempt)
