"""Locks that a forked process finds open, whichever thread of its parent held them."""

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from attrs import define, field

_ALL: "WeakSet[Mutex]" = WeakSet()


@define(eq=False)
class Mutex:
    """A lock, for `with mutex.lock:`. In a forked process it is a new one: the thread that held it is not there.

    `with` takes the lock of the threading module itself, because an interrupt cannot come between taking such a lock
    and entering the block.
    """

    make: Callable[[], Any] = threading.Lock
    lock: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.renew()
        _ALL.add(self)

    def renew(self) -> None:
        """Makes a new lock."""
        self.lock = self.make()


def _renew_all() -> None:
    for mutex in _ALL:
        mutex.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
