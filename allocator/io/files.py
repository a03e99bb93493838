"""Files that are there whole or not at all."""

import errno
from pathlib import Path
from tempfile import TemporaryDirectory


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside `path`, then renames. What is no regular file (a pipe, a device) is written to as it is.

    Raises OSError; then what stood there before is untouched, and nothing else is left behind.
    """
    try:
        _write(path.resolve(), content)
    except OSError as error:
        raise type(error)(error.errno, error.strerror or "cannot be written", str(path)) from error


def _write(target: Path, content: bytes) -> None:
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    check_folder(target)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as stage:
        staged = Path(stage) / "content"
        staged.write_bytes(content)
        staged.replace(target)


def check_folder(path: Path) -> None:
    """Raises FileNotFoundError naming the folder in which `path` would have to lie."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
