"""Ctrl-C in commands that search: the first one ends the search, so that the best plan so far is told and written.

Before there is a plan, and the second time, it ends the command.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType

from allocator.interrupts import Stop, stopped_by
from engine.cli.entry import interrupts_handled
from engine.cli.progress import warn


@contextmanager
def interrupt_ends_search() -> Iterator[None]:
    """Makes the first Ctrl-C in the block end searches that have a plan, where Ctrl-C would end the command else."""
    stop = Stop()

    def end_search(_number: int, _frame: FrameType | None) -> None:
        if stop.is_asked or not stop.has_plan:
            raise KeyboardInterrupt
        stop.is_asked = True

    with interrupts_handled(end_search) as is_handled, stopped_by(stop) if is_handled else nullcontext():
        yield
    if stop.is_asked:
        warn("the search was interrupted; this is its best plan so far")
