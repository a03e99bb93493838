"""The place whose workers share the searches that are under way, where there is one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # most plans are made without workers, whose modules take long to load
    from engine.workers.place import Place

_PLACE: ContextVar["Place | None"] = ContextVar("place", default=None)


@contextmanager
def used(place: "Place") -> Iterator[None]:
    """Makes the searches of the block, in this thread and context only, use the place."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


def current_place() -> "Place | None":
    """Returns the place that searches use; None where each is for itself."""
    return _PLACE.get()
