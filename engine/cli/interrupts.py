"""Ctrl-C in commands that search: the first one ends the search, so that the best plan so far is told and written.

Before there is a plan, and the second time, it ends the command.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from allocator.interrupts import Stop, stopped_by
from engine.cli.progress import warn


@contextmanager
def interrupt_ends_search() -> Iterator[None]:
    """Makes the first Ctrl-C in the block end searches that have a plan, where Ctrl-C would end the command else."""
    stop = Stop()

    def end_search(_number: int, _frame: FrameType | None) -> None:
        if stop.is_asked or not stop.has_plan:
            raise KeyboardInterrupt
        stop.is_asked = True

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, end_search)
    try:
        with stopped_by(stop):
            yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if stop.is_asked:
        warn("the search was interrupted; this is its best plan so far")
