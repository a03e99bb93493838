"""What long work tells of itself while it goes on. It writes down numbers; who watches looks at them when he likes.

Nobody watches unless `watched_by` says so: an activity then costs an object, and what it tells an assignment. Nothing
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
"""Of bytes."""


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
    """Who looks at activities, the outermost first."""

    def begin(self, activity: Activity, /) -> None:
        """It has begun, inside those that have not ended."""

    def end(self, activity: Activity, /) -> None:
        """It has ended, and with it those inside it."""

    def current(self) -> Activity:
        """The innermost one; a new one that nobody sees where there is none."""

    def aside(self) -> AbstractContextManager[None]:
        """While something else is written."""


class Nobody:
    """Sees nothing."""

    def begin(self, activity: Activity, /) -> None:
        """Nothing."""

    def end(self, activity: Activity, /) -> None:
        """Nothing."""

    def current(self) -> Activity:
        """One that nobody sees."""
        return Activity("")

    def aside(self) -> AbstractContextManager[None]:
        """Nothing."""
        return nullcontext()


_WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=Nobody())  # noqa: B039 - it has no state


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Activities that begin in the block are told to the watcher; other threads and contexts are not concerned."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def current() -> Activity:
    """The innermost activity that is under way, for who can tell more of it."""
    return _WATCHER.get().current()


def aside() -> AbstractContextManager[None]:
    """What is written inside the block does not mix with what the watcher shows."""
    return _WATCHER.get().aside()


def each(what: str, items: Sequence[T], name: Callable[[T], str] = str) -> Iterator[T]:
    """The items of a sweep one after the other: which of how many is under way, and its name."""
    with Activity(what, total=len(items)) as seen:
        for number, item in enumerate(items, 1):
            seen.item, seen.done = name(item), number
            yield item
