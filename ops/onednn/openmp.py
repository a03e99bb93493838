"""The OpenMP that the library runs on. Its threads also run parts of compiled calls, so no others are started."""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Thread
from typing import TypeVar

from ops.onednn.library import LibraryError

_CDEF = """
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
"""
Result = TypeVar("Result")
_PROCESS = os.getpid()
_FILE = "libgomp.so.1"


def with_live_threads(work: Callable[[], Result]) -> Result:
    """Returns work(), which runs threads of OpenMP.

    In a forked process it runs on a new thread: OpenMP would wait for ever for the threads of the parent process.
    """
    if os.getpid() == _PROCESS:
        return work()
    results: list[Result] = []
    thread = Thread(target=lambda: results.append(work()), name="arenaplan", daemon=True)
    thread.start()
    try:
        thread.join()
    finally:
        thread.join()  # an interrupt came first, and nobody else may use the memory that it writes
    return results[0]


@cache
def team_addresses() -> tuple[int, int, int]:
    """Returns the addresses of GOMP_parallel, omp_get_thread_num and omp_get_num_threads. Raises LibraryError."""
    ffi = import_module("cffi").FFI()
    ffi.cdef(_CDEF)
    try:
        lib = ffi.dlopen(_FILE)  # the one that the library has loaded
    except OSError as error:
        raise LibraryError(f"{_FILE} cannot be loaded: {error}") from error
    first, second, third = (
        int(ffi.cast("intptr_t", f)) for f in (lib.GOMP_parallel, lib.omp_get_thread_num, lib.omp_get_num_threads)
    )
    return first, second, third
