"""Files as arrays: mapped into memory, read when they are touched, and given back to the system when they have been.

Pages of a mapped file that nobody wrote are copies of the file: they may be dropped at any time, and come again when
they are touched (man 2 mmap, madvise: MADV_DONTNEED). While it is mapped, a file must not be cut short; it may be
replaced.
"""

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from engine.views import address
from ops.spec import Array

_PAGE = mmap.PAGESIZE
_AROUND = 1 << 16
"""Bytes around a touched page that Linux maps with it where it has them (fault_around_bytes)."""


def map_file(path: Path) -> mmap.mmap:
    """The bytes of a file, read-only. Raises OSError, and ValueError for an empty file."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def mapping_of(array: Array) -> mmap.mmap | None:
    """The mapped file that an array is a part of, if it is one."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None


def release(array: Array) -> None:
    """Lets go of the pages that hold a dense array in a mapped file, and of some around it; they come again."""
    mapping = mapping_of(array)
    if mapping is None or not array.nbytes:
        return
    start = address(array) - address(np.frombuffer(mapping, np.uint8, 1))
    first = max(0, start - _AROUND) // _PAGE * _PAGE
    _drop(mapping, first, min(start + array.nbytes + _AROUND, len(mapping)) - first)


def release_files(arrays: Iterable[Array]) -> None:
    """Lets go of all pages of the files that arrays are parts of."""
    for mapping in {id(m): m for m in map(mapping_of, arrays) if m is not None}.values():
        _drop(mapping, 0, len(mapping))


def _drop(mapping: mmap.mmap, first: int, length: int) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED, first, length)
