"""What tests of processes share: how long they wait, and whether a process has ended."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from tests.helpers.paths import ROOT

PATIENCE = 240.0
"""Seconds after which a process that should have ended is stuck; the machine may be busy."""


def environment() -> dict[str, str]:
    """Returns that of this process, with this checkout as the place of packages."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def comes(what: Callable[[], bool]) -> bool:
    """Returns whether something becomes true in time."""
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def ends(process: int) -> bool:
    """Returns whether a process ends in time; one that nobody has waited for counts as ended."""
    return comes(lambda: _is_gone(process))


def _is_gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def free_port() -> int:
    """Returns a port of the loopback address at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
