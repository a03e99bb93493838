"""Numbers of threads, and limits of the threads of BLAS. Only this module imports threadpoolctl, which is optional."""

import logging
import operator
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, SupportsIndex

from attrs import define, field

from allocator.machine_code.mutex import Mutex
from engine.text.errors import EngineError, OptionError

MOST_THREADS = 1024
"""The largest number of threads that is accepted; a larger one is surely an error."""
_LOG = logging.getLogger("arenaplan")
AS_THEY_ARE = 0
"""Leaves the threads of BLAS as the library or its environment variables set them."""


def check_threads(threads: object, least: int, meaning: str = "") -> None:
    """Raises OptionError unless `threads` is a number from `least` on; `meaning` explains `least` in the message."""
    number = -1 if isinstance(threads, bool) or not isinstance(threads, SupportsIndex) else operator.index(threads)
    if not least <= number <= MOST_THREADS:
        raise OptionError(
            f"threads {threads!r} is no integer from {least}{meaning and f' ({meaning})'} to {MOST_THREADS}"
        )


def cpus() -> int:
    """Returns how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(threads: int) -> AbstractContextManager[Any]:
    """Returns a context in which BLAS uses at most that many threads. Raises EngineError without threadpoolctl."""
    if threads == AS_THEY_ARE:
        return nullcontext()
    limits: AbstractContextManager[Any] = _threadpoolctl().threadpool_limits(limits=threads, user_api="blas")
    return limits


def limit_for(threads: int) -> "BlasLimit | NoLimit":
    """Returns the limit of BLAS for runs of a network; for AS_THEY_ARE one that limits nothing.

    Without threadpoolctl there is no limit either, and a warning in the log says so.
    """
    if threads == AS_THEY_ARE:
        return NoLimit()
    try:
        return BlasLimit(threads)
    except EngineError as error:
        _LOG.warning("threads=%d does not hold for BLAS: %s", threads, error)
        return NoLimit()


def _threadpoolctl() -> Any:
    try:
        import threadpoolctl  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise EngineError("the threads of BLAS are set through threadpoolctl: pip install -e '.[parallel]'") from error
    return threadpoolctl


@define(eq=False)
class _Held:
    """The limits that hold now. BLAS has one number for the whole process, so concurrent runs share this object.

    `original` has each library and its number of threads before the first limit, by the path of its file.
    """

    mutex: Mutex = field(factory=Mutex)
    process: int = field(factory=os.getpid)
    limits: dict["BlasLimit", int] = field(factory=dict)
    original: dict[str, tuple[Any, int]] = field(factory=dict)

    def forget_parent(self) -> None:
        """Ends the limits of runs in the process of which this one was forked: they do not end here."""
        if self.process != os.getpid():
            self.process = os.getpid()
            self.limits.clear()
            self.set_all()

    def set_all(self) -> None:
        most = min(self.limits.values(), default=0)
        for library, before in self.original.values():
            _set_from_any_thread(library, min(before, most) if self.limits else before)
        if not self.limits:
            self.original.clear()


def _set_from_any_thread(library: Any, threads: int) -> None:
    """Sets the threads of a library from any thread; the caller holds a lock.

    Newer versions of threadpoolctl let one thread control OpenBLAS and silently ignore all others.
    """
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is None:
        library.set_num_threads(threads)
        return
    clear(force=True)
    library.set_num_threads(threads)
    clear()


_HELD = _Held()


class NoLimit:
    """No limit of BLAS."""

    def hold(self) -> None:
        """Does nothing."""

    def release(self) -> None:
        """Does nothing."""


class BlasLimit:
    """A limit of `most` threads of BLAS between `hold` and `release`.

    If several limits hold at once, the least counts; the last release restores the original numbers. The constructor
    searches the libraries, because that is too slow for every run. Raises EngineError without threadpoolctl.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        controller = _threadpoolctl().ThreadpoolController().select(user_api="blas")
        self._libraries = tuple(controller.lib_controllers)

    def hold(self) -> None:
        """Begins the limit."""
        with _HELD.mutex.lock:
            _HELD.forget_parent()
            for library in self._libraries:
                _HELD.original.setdefault(library.filepath, (library, library.get_num_threads()))
            _HELD.limits[self] = self.most
            _HELD.set_all()

    def release(self) -> None:
        """Ends the limit, if it holds."""
        with _HELD.mutex.lock:
            if self in _HELD.limits:
                del _HELD.limits[self]
                _HELD.set_all()
