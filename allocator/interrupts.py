"""How somebody ends searches early: what has a plan by then stops improving it.

Nothing can be stopped unless `stopped_by` says so; nothing outlives its `with` block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import define


@define(eq=False)
class Stop:
    """Whether searches are to end with their best plan (`is_asked`), and whether there is a plan (`has_plan`)."""

    is_asked: bool = False
    has_plan: bool = False


_STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Makes the searches of the block, in this thread and context only, look at `stop`."""
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


def current_stop() -> Stop:
    """Returns what searches look at; a new one, that nobody asks, where there is none."""
    return _STOP.get() or Stop()
