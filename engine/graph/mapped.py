"""Files as arrays: mapped into memory, read when they are accessed, and released to the system after use.

Pages of a mapped file that were not written are copies of the file: they may be dropped at any time, and are read again
on access (man 2 mmap, madvise: MADV_DONTNEED). While it is mapped, a file must be neither written nor cut: arrays would
change, or reading them would end the process (SIGBUS). Another file may be renamed over it.
"""

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from engine.text.errors import ModelError
from ops.tensor.layout import address_of
from ops.tensor.spec import Array

_PAGE = mmap.PAGESIZE
_AROUND = 1 << 16
"""Bytes around a touched page that Linux maps with it where it has them (fault_around_bytes)."""


class MappedFile(mmap.mmap):
    """The bytes of a file, and its status when it was mapped."""

    path: Path
    status: os.stat_result

    @property
    def is_unchanged(self) -> bool:
        """True if the file has its size and was not written since. A file that was renamed over it does not count."""
        if self.size() != self.status.st_size:
            return False
        try:
            now = self.path.stat()
        except OSError:
            return True
        same = (now.st_dev, now.st_ino) == (self.status.st_dev, self.status.st_ino)
        return not same or now.st_mtime_ns == self.status.st_mtime_ns


def map_file(path: Path) -> MappedFile:
    """Maps a file, read-only. Raises OSError, and ValueError for an empty file."""
    with path.open("rb") as file:
        mapping = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapping.path, mapping.status = path.absolute(), os.fstat(file.fileno())
        return mapping


def check_files(arrays: Iterable[Array]) -> None:
    """Raises ModelError where a mapped file of some array was written or cut since it was mapped."""
    for mapping in {id(m): m for m in map(mapping_of, arrays) if isinstance(m, MappedFile)}.values():
        if not mapping.is_unchanged:
            raise ModelError(
                f"{mapping.path} was written after the graph was loaded from it, which reads its weights there: load "
                "it again, and rename new files over old ones, or load with mapped=False"
            )


def mapping_of(array: Array) -> mmap.mmap | None:
    """Returns the mapped file that has the bytes of an array, if there is one."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None


def release(array: Array) -> None:
    """Releases the pages of a dense array in a mapped file, and some around it; they are read again on access."""
    mapping = mapping_of(array)
    if mapping is None or not array.nbytes:
        return
    start = address_of(array) - address_of(np.frombuffer(mapping, np.uint8, 1))
    first = max(0, start - _AROUND) // _PAGE * _PAGE
    _drop(mapping, first, min(start + array.nbytes + _AROUND, len(mapping)) - first)


def release_files(arrays: Iterable[Array]) -> None:
    """Releases all pages of the files that have the bytes of these arrays."""
    for mapping in {id(m): m for m in map(mapping_of, arrays) if m is not None}.values():
        _drop(mapping, 0, len(mapping))


def _drop(mapping: mmap.mmap, first: int, length: int) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED, first, length)
