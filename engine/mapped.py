"""Files as arrays: mapped into memory, read when they are touched, and given back to the system when they have been.

Pages of a mapped file that nobody wrote are copies of the file: they may be dropped at any time, and come again when
they are touched (man 2 mmap, madvise: MADV_DONTNEED). While it is mapped, a file must not be cut short; it may be
replaced.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from engine.views import address
from ops.spec import Array

_PAGE = mmap.PAGESIZE


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
    """Lets go of the pages that hold a dense array in a mapped file, and nothing else; touched, they are read again."""
    mapping = mapping_of(array)
    if mapping is None or not array.nbytes or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = address(array) - address(np.frombuffer(mapping, np.uint8, 1))
    first, last = -(-start // _PAGE) * _PAGE, (start + array.nbytes) // _PAGE * _PAGE
    if first < last:
        mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
