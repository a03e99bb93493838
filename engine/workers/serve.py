"""The worker's side: what a process of a pool does before its first task, and what it tells about itself."""

import os
import signal
import threading
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection


def begin(life: Connection) -> None:
    """Makes this process end when the other end of `life` is closed: its maker has let go of it, or died.

    Ctrl-C goes to all processes of a terminal; what it means is for the maker to decide.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(life,), name="life", daemon=True).start()


def _end_with(life: Connection) -> None:
    try:
        life.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def own_version() -> str:
    """Returns the version of this project that a worker has; "" where it runs from source alone."""
    try:
        return version("arenaplan")
    except PackageNotFoundError:
        return ""
