"""Arrays that end, or begin, where a page without access begins or ends: one byte too far ends the process."""

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ops.tensor.spec import Array

IS_THERE = sys.platform == "linux"
"""Whether pages can be protected in this way here."""
_NO_ACCESS = 0
_PAGE = mmap.PAGESIZE


@contextmanager
def guarded(array: Array, *, at_end: bool) -> Iterator[Array]:
    """Yields a dense copy of an array whose last byte (or else first) lies beside a page without access."""
    pages = -(-max(array.nbytes, 1) // _PAGE)
    room = mmap.mmap(-1, (pages + 2) * _PAGE)
    held = np.frombuffer(room, np.uint8)
    address = held.ctypes.data
    begin = _PAGE + (pages * _PAGE - array.nbytes if at_end else 0)
    copy: Array = held[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    guards = address, address + (pages + 1) * _PAGE
    for guard in guards:
        _protect(guard, _NO_ACCESS)
    try:
        yield copy
    finally:
        for guard in guards:
            _protect(guard, mmap.PROT_READ | mmap.PROT_WRITE)


def _protect(address: int, access: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_PAGE), access):
        raise OSError(ctypes.get_errno(), "mprotect")
