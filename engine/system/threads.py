"""How many threads there are to use, and how many BLAS may use. The one door onto threadpoolctl, which is optional."""

import logging
import operator
import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, SupportsIndex

from attrs import define, field

from engine.text.errors import EngineError, OptionError

MOST_THREADS = 1024
"""Beyond which only an error can be meant."""
_LOG = logging.getLogger("arenaplan")
AS_THEY_ARE = 0
"""Leave the threads of BLAS as the library, or its environment variables, set them."""


def check_threads(threads: object, least: int, meaning: str = "") -> None:
    """Raises OptionError for what is no number of threads from `least` on; `meaning` tells what that one stands for."""
    number = -1 if isinstance(threads, bool) or not isinstance(threads, SupportsIndex) else operator.index(threads)
    if not least <= number <= MOST_THREADS:
        raise OptionError(
            f"threads {threads!r} is no integer from {least}{meaning and f' ({meaning})'} to {MOST_THREADS}"
        )


def cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(threads: int) -> AbstractContextManager[Any]:
    """Inside, BLAS uses at most so many threads. Raises EngineError where threadpoolctl is needed and not there."""
    if threads == AS_THEY_ARE:
        return nullcontext()
    limits: AbstractContextManager[Any] = _threadpoolctl("bench").threadpool_limits(limits=threads, user_api="blas")
    return limits


def limit_for(threads: int) -> "BlasLimit | NoLimit":
    """What holds BLAS to so many threads while a network runs; nothing for AS_THEY_ARE.

    Nothing either where threadpoolctl is not there: then a line of the log says so.
    """
    if threads == AS_THEY_ARE:
        return NoLimit()
    try:
        return BlasLimit(threads)
    except EngineError as error:
        _LOG.warning("threads=%d does not hold for BLAS: %s", threads, error)
        return NoLimit()


def _threadpoolctl(extra: str) -> Any:
    try:
        import threadpoolctl  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise EngineError(
            f"the threads of BLAS are set through threadpoolctl: pip install 'arenaplan[{extra}]'"
        ) from error
    return threadpoolctl


@define(eq=False)
class _Held:
    """The limits that hold now. BLAS has one number for the whole process, so runs at once must know of each other.

    `found` has the number of threads that each library had before the first limit, by the path of its file.
    """

    lock: Any = field(factory=threading.Lock)
    limits: dict["BlasLimit", int] = field(factory=dict)
    found: dict[str, tuple[Any, int]] = field(factory=dict)

    def set_all(self) -> None:
        most = min(self.limits.values(), default=0)
        for library, before in self.found.values():
            _set_from_any_thread(library, min(before, most) if self.limits else before)
        if not self.limits:
            self.found.clear()


def _set_from_any_thread(library: Any, threads: int) -> None:
    """Newer threadpoolctl lets one thread control OpenBLAS and silently ignores all others; here a lock does that."""
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is None:
        library.set_num_threads(threads)
        return
    clear(force=True)
    library.set_num_threads(threads)
    clear()


_HELD = _Held()


class NoLimit:
    """BLAS uses as many threads as it likes."""

    def hold(self) -> None:
        """Nothing."""

    def release(self) -> None:
        """Nothing."""


class BlasLimit:
    """BLAS uses at most `most` threads between `hold` and `release`, each of which takes microseconds.

    Where several hold at once, the least counts; the last to be released restores what the first one found. Finding the
    libraries takes milliseconds, here. Raises EngineError where threadpoolctl is not there.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        found = _threadpoolctl("parallel").ThreadpoolController().select(user_api="blas")
        self._libraries = tuple(found.lib_controllers)

    def hold(self) -> None:
        """From now on."""
        with _HELD.lock:
            for library in self._libraries:
                _HELD.found.setdefault(library.filepath, (library, library.get_num_threads()))
            _HELD.limits[self] = self.most
            _HELD.set_all()

    def release(self) -> None:
        """Until now; nothing where it is not held."""
        with _HELD.lock:
            if self in _HELD.limits:
                del _HELD.limits[self]
                _HELD.set_all()
