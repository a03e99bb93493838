"""Bytes that lie in a file without a name: its pages are the file's, so that the system may write them out and drop
them.

The mapping is shared (man 2 mmap: MAP_SHARED), so no byte of it is anonymous memory. The file goes with the last array
that has its bytes, however the process ends.
"""

import errno
import mmap
import os
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from engine.text.errors import NoMemoryError, OptionError
from engine.text.units import format_bytes
from ops.tensor.layout import address_of
from ops.tensor.spec import Array

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_RESERVED = {errno.EINVAL, errno.EOPNOTSUPP}
"""What posix_fallocate says where the file system cannot reserve bytes (man 3 posix_fallocate)."""


def bytes_in_file(folder: Path, nbytes: int, alignment: int) -> Array:
    """Returns zeros that start at a multiple of `alignment`, in a new file in a folder.

    The system reserves them on the disk where it can (posix_fallocate): a full disk is an error here, and not a signal
    while the network runs. Raises NoMemoryError where the disk, a limit, or the addresses of the process have no room;
    OptionError where no file can be made in the folder.
    """
    if not nbytes:
        return np.empty(0, np.uint8)
    size = nbytes + (alignment if alignment > mmap.PAGESIZE else 0)
    try:
        with TemporaryFile(dir=folder) as file:
            reserve_bytes(file.fileno(), size)
            mapping = mmap.mmap(file.fileno(), size)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.ENOMEM:
            raise NoMemoryError(f"a file of {format_bytes(size)} cannot be mapped: {reason}") from error
        if error.errno in _FULL:
            raise NoMemoryError(f"folder {str(folder)!r} has no room for {format_bytes(size)}: {reason}") from error
        raise _no_file(folder, error) from error
    row = np.frombuffer(mapping, np.uint8)
    start = -address_of(row) % alignment
    return row[start : start + nbytes]


def check_folder(folder: Path) -> None:
    """Makes a file without bytes in a folder, which is gone again then. Raises OptionError where that is impossible."""
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _no_file(folder, error) from error


def _no_file(folder: Path, error: OSError) -> OptionError:
    return OptionError(f"folder {str(folder)!r}: no file can be made there: {error.strerror or error}")


def reserve_bytes(file: int, size: int) -> None:
    """Gives a file so many bytes, reserved on the disk where the system and the file system can do that.

    Raises OSError where the disk, or a limit, has no room.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in _NOT_RESERVED:
                raise
    os.ftruncate(file, size)
