"""Files as arrays: mapped into memory, read when they are touched, and given back to the system when they have been.

Pages of a mapped file that nobody wrote are copies of the file: they may be dropped at any time, and come again when
they are touched (man 2 mmap, madvise: MADV_DONTNEED). While it is mapped, a file must be neither written nor cut short:
arrays would change, or reading them would end the process (SIGBUS). Another file may be renamed over it.
"""

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from engine.system.arrays import address
from engine.text.errors import ModelError
from ops.tensor.spec import Array

_PAGE = mmap.PAGESIZE
_AROUND = 1 << 16
"""Bytes around a touched page that Linux maps with it where it has them (fault_around_bytes)."""


class MappedFile(mmap.mmap):
    """The bytes of a file, and what the system said of it when it was mapped."""

    path: Path
    found: os.stat_result

    @property
    def is_unchanged(self) -> bool:
        """Whether the file has its size, and nobody wrote it since; one in its place is another file."""
        if self.size() != self.found.st_size:
            return False
        try:
            now = self.path.stat()
        except OSError:
            return True
        same = (now.st_dev, now.st_ino) == (self.found.st_dev, self.found.st_ino)
        return not same or now.st_mtime_ns == self.found.st_mtime_ns


def map_file(path: Path) -> MappedFile:
    """The bytes of a file, read-only. Raises OSError, and ValueError for an empty file."""
    with path.open("rb") as file:
        mapping = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapping.path, mapping.found = path.absolute(), os.fstat(file.fileno())
        return mapping


def check_files(arrays: Iterable[Array]) -> None:
    """Raises ModelError where a file that arrays are parts of was written or cut since it was mapped."""
    for mapping in {id(m): m for m in map(mapping_of, arrays) if isinstance(m, MappedFile)}.values():
        if not mapping.is_unchanged:
            raise ModelError(
                f"{mapping.path} was written after the graph was loaded from it, which reads its weights there: load "
                "it again, and rename new files over old ones, or load with mapped=False"
            )


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
