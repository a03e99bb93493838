"""Files that are there whole or not at all."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from allocator.progress import Activity


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside `path`, then renames it; see `open_whole`. Raises OSError."""
    with open_whole(path) as out:
        out.write(content)


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """Opens a file beside `path` for writing, which replaces `path` at the end.

    What is no regular file (a pipe, a device) is written to as it is. Raises OSError; where anything is raised before
    the end, what stood there before is untouched, and nothing else is left behind.
    """
    try:
        with _opened(path.resolve()) as out:
            yield out
    except OSError as error:
        raise type(error)(error.errno, error.strerror or "cannot be written", str(path)) from error


@contextmanager
def _opened(target: Path) -> Iterator[BinaryIO]:
    if target.exists() and not target.is_file():
        with target.open("wb") as out:
            yield out
        return
    check_folder(target)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as stage:
        staged = Path(stage) / "content"
        with Activity("writing", target.name), staged.open("wb") as out:
            yield out
        staged.replace(target)


def is_special(path: Path) -> bool:
    """Returns whether a path is a pipe or a device, which is written to as it is, and whose name says nothing."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_folder(path: Path) -> None:
    """Raises FileNotFoundError naming the folder in which `path` would have to lie."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
