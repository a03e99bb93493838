"""The folders of machine code on disk: one file for each function and instruction set.

    FOLDER/machine_code-CHECKOUT/MODULE/NAME-INSTRUCTIONS.code

A file is written whole or not at all, and read only if its checksum fits and nobody else may write it. The folder that
came with the package is looked at first; what it lacks is kept in NUMBA_CACHE_DIR, or else beside the compiled Python
of this package, in the user's cache if that is read-only, or in the folder of temporary files if there is none.
"""

import os
import shutil
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from allocator.machine_code.checksum import checksum
from allocator.machine_code.image import MOST_BYTES
from allocator.machine_code.sources import ROOT

PACKAGED = Path(__file__).parent / "made"
"""Code that was made when the package was built."""
_PREFIX = "machine_code-"
_MOST = 8
"""Folders of one root, each for another checkout."""
_MODE = 0o644
"""Others may read what the owner writes, whatever the umask is."""
_ROOT = 0


def file_name(module: str, name: str, instructions: str) -> str:
    """Returns the name of the file of a function, relative to a folder of machine code."""
    return f"{module}/{name}-{instructions}.code"


def kept_folder() -> Path:
    """Returns the folder that code of this checkout is kept in; deletes the oldest of others beside a new one."""
    return _folder_in(Path(os.environ.get("NUMBA_CACHE_DIR", "") or _default_root()))


@cache
def _folder_in(root: Path) -> Path:
    folder = root / f"{_PREFIX}{checksum(str(ROOT).encode()).hex()}"
    with suppress(OSError):
        if not folder.exists():
            others = sorted(root.glob(f"{_PREFIX}*"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in others[_MOST - 1 :]:
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    return folder


def _default_root() -> Path:
    beside = Path(__file__).parent / "__pycache__"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK):
        return beside
    try:
        return Path(os.environ.get("XDG_CACHE_HOME", "") or Path("~/.cache").expanduser()) / "arenaplan"
    except RuntimeError:  # a user without a home, as in some containers
        return Path(gettempdir()) / "arenaplan"


def open_file(path: Path) -> int:
    """Opens a file that may be one of ours, and returns its number. Raises OSError for anything else."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe is not waited for
    try:
        _check(path, os.fstat(number))
    except OSError:
        os.close(number)
        raise
    return number


def _check(path: Path, status: os.stat_result) -> None:
    """Raises OSError where a file is none of ours, or somebody may write it who may not write this package."""
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise OSError(f"{path} is no file of at most {MOST_BYTES} bytes")
    package = Path(__file__).stat()
    writers = status.st_mode & ~package.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writers or status.st_uid not in (os.geteuid(), package.st_uid, _ROOT):
        raise OSError(f"{path} can be written by another user")


def write_file(path: Path, content: bytes) -> None:
    """Writes a file whole, or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".writing-", ignore_cleanup_errors=True) as stage:
        staged = Path(stage) / path.name
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
            file.write(content)
        staged.replace(path)
