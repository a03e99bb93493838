"""What the operating system says of this process: resident bytes, their peak, page faults. None: it does not say.

Linux tells by /proc (man 5 proc_pid_status, proc_pid_clear_refs, proc_pid_smaps), others by getrusage alone.
"""

import ctypes
import gc
import mmap
import sys
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
    """Page faults: minor ones only map a page, major ones read it from a disk."""

    minor: int
    major: int


def whole_pages(size: int) -> int:
    """Bytes of the pages that so many bytes take."""
    return -(-size // PAGE) * PAGE


def resident_bytes() -> int | None:
    """Bytes of memory that the process holds now."""
    return _told("status", "VmRSS:")


def peak_bytes() -> int | None:
    """The most bytes that were resident since the last `reset_peak`, or since the process began."""
    told = _told("status", "VmHWM:")
    if told is not None or sys.platform == "win32":
        return told
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> bool:
    """The peak counts from here on. False where the system has no such thing: the peak then counts from the start."""
    try:
        (_PROC / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def huge_bytes() -> int | None:
    """Bytes that lie in transparent huge pages, of which every touched one is resident as a whole."""
    return _told("smaps_rollup", "AnonHugePages:")


def page_faults() -> Faults | None:
    """Of the process so far."""
    if sys.platform == "win32":
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Faults(used.ru_minflt, used.ru_majflt)


def give_back() -> bool:
    """Collects garbage, gives pages of freed memory back. False where the C library (not glibc) cannot be asked to."""
    gc.collect()
    return _call("malloc_trim", 0) is not None


def refuse_huge_pages() -> bool:
    """From here on this process gets no transparent huge pages. False where that cannot be asked for."""
    return _call("prctl", _THP_DISABLE, 1, 0, 0, 0) == 0


def _call(name: str, *numbers: int) -> int | None:
    """A function of the C library, where it has one of the name."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return int(function(*map(ctypes.c_ulong, numbers)))


def _told(file: str, key: str) -> int | None:
    """Bytes behind a key of a file such as /proc/self/status, which has them in KiB."""
    try:
        lines = (_PROC / file).read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)
