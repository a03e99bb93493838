"""The processes that a process has started, and their ends at random."""

import os
import random
import signal
import time
from pathlib import Path


def children(process: int) -> list[int]:
    """Returns the ids of the Python processes that a process has started, but for helpers of multiprocessing."""
    try:
        ids = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in ids if b"spawn_main" in _command(one)]


def kill_some(process: int, deaths: int, pause: float, seed: int) -> int:
    """Kills workers of a process at random, one after each pause, until so many have died or it has ended.

    Returns how many were killed.
    """
    draw, killed = random.Random(seed), 0
    while killed < deaths and _is_running(process):
        time.sleep(pause)
        alive = children(process)
        if alive:
            os.kill(draw.choice(alive), signal.SIGKILL)
            killed += 1
    return killed


def _is_running(process: int) -> bool:
    """Returns whether a process has not ended; one that nobody has waited for yet still has an entry."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def _command(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
