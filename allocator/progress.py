"""Progress of long work: numbers that a watcher reads whenever it likes.

Nothing watches unless `watched_by` says so: an activity then costs an object, and each report an assignment. Nothing
here prints, and nothing outlives the `with` block that it belongs to.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, Self, TypeVar

from attrs import define, field

T = TypeVar("T")
NOT_KNOWN = -1
"""A number of bytes that is not known."""


@define(eq=False)
class Activity:
    """Something that takes long: `what` is done, and to or by which `item`. It lasts as long as its `with` block.

    `done` of `total` (0: not known) are done, counted in a `unit`; without one, the one that is `done` is under way.
    `best` is the best result so far and `bound` what none goes below, both in bytes. It ends after `limit` seconds at
    the latest.
    """

    what: str
    item: str = ""
    done: int = 0
    total: int = 0
    unit: str = ""
    best: int = NOT_KNOWN
    bound: int = NOT_KNOWN
    limit: float = math.inf
    _watcher: "Watcher" = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._watcher = _WATCHER.get()

    def __enter__(self) -> Self:
        self._watcher.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.end(self)


class Watcher(Protocol):
    """An observer of activities, the outermost first."""

    def begin(self, activity: Activity, /) -> None:
        """Receives an activity that has begun, inside those that have not ended."""

    def end(self, activity: Activity, /) -> None:
        """Receives an activity that has ended, and with it those inside it."""

    def current(self) -> Activity:
        """Returns the innermost one; a new one that is not watched where there is none."""

    def aside(self) -> AbstractContextManager[None]:
        """Returns a context in which something else is written."""


class NullWatcher:
    """A watcher that shows nothing."""

    def begin(self, activity: Activity, /) -> None:
        """Does nothing."""

    def end(self, activity: Activity, /) -> None:
        """Does nothing."""

    def current(self) -> Activity:
        """Returns a new one that is not watched."""
        return Activity("")

    def aside(self) -> AbstractContextManager[None]:
        """Returns a context that does nothing."""
        return nullcontext()


_WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=NullWatcher())  # noqa: B039 - it has no state


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Makes a watcher observe the activities that begin in the block, in this thread and context only."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def current() -> Activity:
    """Returns the innermost activity that is under way, to which more can be reported."""
    return _WATCHER.get().current()


def aside() -> AbstractContextManager[None]:
    """Returns a context: what is written inside does not mix with what the watcher shows."""
    return _WATCHER.get().aside()


def each(what: str, items: Sequence[T], name: Callable[[T], str] = str) -> Iterator[T]:
    """Yields the items of a sweep one after the other: which of how many is under way, and its name."""
    with Activity(what, total=len(items)) as seen:
        for number, item in enumerate(items, 1):
            seen.item, seen.done = name(item), number
            yield item
