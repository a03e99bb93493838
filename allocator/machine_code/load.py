"""Maps images into this process, for good. No page can ever be written and executed at once.

The whole file is mapped privately. Only the pages of the table are written, so that all others are shared by all
processes that map the file. Then code becomes executable, and everything else is only read.
"""

import ctypes
import mmap
import os
import sys
from functools import cache
from typing import Any

from attrs import frozen

from allocator.machine_code.image import Stored
from allocator.machine_code.library import address_of

IS_SUPPORTED = sys.platform == "linux"
"""Whether images are made and loaded: code of other systems has other formats and calls."""
_NO_FILE = -1


@frozen
class _System:
    map: Any
    protect: Any


def load(content: bytes, stored: Stored, file: int = _NO_FILE) -> int:
    """Returns the address of the function of an image, whose file is open under the number `file`, or only in memory.

    Raises OSError where the system refuses, and SymbolError where its C library lacks a function.
    """
    words = [(w.offset, (address_of(w.name) if w.name else 0) + w.addend, not w.name) for w in stored.words]
    base = _mapped(content, file)
    first = base + stored.code.start
    for offset, number, is_inside in words:
        word = ctypes.c_uint64.from_address(base + stored.table.start + offset)
        word.value = number + first if is_inside else number
    _protect(base, len(content), mmap.PROT_READ)
    try:
        _protect(first, len(stored.code), mmap.PROT_READ | mmap.PROT_EXEC)
    except OSError:
        if file == _NO_FILE:
            raise
        return load(content, stored)  # a file system whose files may not be executed: a copy in memory may
    return first + stored.entry


def _mapped(content: bytes, file: int) -> int:
    """Returns the address of a private mapping of these bytes that can be written."""
    kind = mmap.MAP_PRIVATE if file >= 0 else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    place = _system().map(None, len(content), mmap.PROT_READ | mmap.PROT_WRITE, kind, file, 0)
    if place == ctypes.c_void_p(-1).value:
        raise _refused(f"{len(content)} bytes of compiled code cannot be mapped")
    if file < 0:
        ctypes.memmove(place, content, len(content))
    return int(place)


def _protect(start: int, size: int, protection: int) -> None:
    if size and _system().protect(start, size, protection):
        raise _refused(f"{size} bytes of compiled code cannot be protected")


def _refused(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


@cache
def _system() -> _System:
    """Returns mmap and mprotect: Python's own mapping would end with its object, before other threads do."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return _System(library.mmap, library.mprotect)
