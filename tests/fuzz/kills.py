"""Processes that are killed at random moments while they write machine code, traces, pages, plans and arrays."""

from pathlib import Path

import numpy as np

from tests.fuzz.base import STOPPED, Kind, Tried, WrongError, seed_text
from tests.helpers.killed_writers import IS_THERE, MOST_SECONDS, WRITERS, written


def attempt(path: Path) -> Tried:
    """Kills a process that writes a file: one of two contents must be there, whole."""
    if not IS_THERE:
        return Tried("no processes are forked here")
    rng = np.random.default_rng(int(path.read_text()))
    kind = tuple(WRITERS)[rng.integers(len(WRITERS))]
    file = written(kind)
    file.kill_a_writer(rng.uniform(0, MOST_SECONDS))
    if not file.is_whole():
        raise WrongError(f"{kind}: a killed process left half a file")
    return Tried(kind)


KILLS = Kind("kills", STOPPED, "seed", seed_text, attempt)
