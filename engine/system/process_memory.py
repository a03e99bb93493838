"""The memory of this process: resident bytes, their peak, page faults. A function returns None if it cannot tell.

On Linux the numbers are from /proc (man 5 proc_pid_status, proc_pid_clear_refs, proc_pid_smaps), on other systems from
getrusage alone.
"""

import ctypes
import gc
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

if sys.platform != "win32":
    import resource

PAGE = mmap.PAGESIZE
_PROC = Path("/proc/self")
_RESET_PEAK = "5"
_THP_DISABLE = 41
"""PR_SET_THP_DISABLE of prctl."""


@frozen
class Faults:
    """Numbers of page faults: a minor one only maps a page, a major one reads it from a disk."""

    minor: int
    major: int


def whole_pages(size: int) -> int:
    """Returns a size rounded up to whole pages, in bytes."""
    return -(-size // PAGE) * PAGE


def resident_bytes() -> int | None:
    """Returns the bytes of memory that the process holds now."""
    return _proc_bytes("status", "VmRSS:")


def file_bytes() -> int | None:
    """Returns those of the resident bytes that are pages of files: code, and files that are mapped."""
    return _proc_bytes("status", "RssFile:")


def anonymous_bytes(process: int | None = None) -> int | None:
    """Returns those of the resident bytes of a process, by default this one, that are no pages of files."""
    return _proc_bytes("status", "RssAnon:", process)


def peak_bytes() -> int | None:
    """Returns the maximum of the resident bytes since the last `reset_peak`, or since the process began."""
    peak = _proc_bytes("status", "VmHWM:")
    if peak is not None or sys.platform == "win32":
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> bool:
    """Resets the peak. Returns False where the system cannot: the peak then counts from the start of the process."""
    try:
        (_PROC / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


@contextmanager
def data_limit(more: int) -> Iterator[None]:
    """Limits the bytes that this process may map beyond those that it has to `more`, for a while (RLIMIT_DATA).

    Pages of files that are mapped as shared do not count. Raises OSError on systems that cannot say what is mapped.
    """
    mapped = _proc_bytes("status", "VmData:")
    if mapped is None:
        raise OSError("this system has neither control groups nor RLIMIT_DATA as Linux has it")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (max(mapped + more, 0), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def huge_bytes() -> int | None:
    """Returns the bytes in transparent huge pages; a huge page that is touched is resident as a whole."""
    return _proc_bytes("smaps_rollup", "AnonHugePages:")


def page_faults() -> Faults | None:
    """Returns the page faults of the process so far."""
    if sys.platform == "win32":
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Faults(used.ru_minflt, used.ru_majflt)


def give_back() -> bool:
    """Collects garbage and returns freed pages to the system. Returns False where the C library is not glibc."""
    gc.collect()
    return trim()


def trim() -> bool:
    """Returns the pages that the C library keeps of freed blocks to the system. Returns False where it is not glibc."""
    return _call("malloc_trim", 0) is not None


def refuse_huge_pages() -> bool:
    """Disables transparent huge pages for this process. Returns False where the system cannot."""
    return _call("prctl", _THP_DISABLE, 1, 0, 0, 0) == 0


def _call(name: str, *numbers: int) -> int | None:
    """Calls a function of the C library and returns its result; None where it has no function of that name."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return int(function(*map(ctypes.c_ulong, numbers)))


def _proc_bytes(file: str, key: str, process: int | None = None) -> int | None:
    """Returns the bytes behind a key of a file such as /proc/self/status, which has them in KiB."""
    home = _PROC if process is None else _PROC.with_name(str(process))
    try:
        lines = (home / file).read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)
