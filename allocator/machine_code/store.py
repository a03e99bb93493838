"""The folders of machine code on disk: one file for each function and instruction set.

    FOLDER/machine_code-CHECKOUT/MODULE/NAME-INSTRUCTIONS.code

A file is written whole or not at all, and read only if its checksum fits. The folder that came with the package is
looked at first; what it lacks is kept in NUMBA_CACHE_DIR, or else beside the compiled Python of this package, in the
user's cache if that is read-only.
"""

import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from allocator.machine_code.checksum import checksum
from allocator.machine_code.image import MOST_BYTES
from allocator.machine_code.sources import ROOT

PACKAGED = Path(__file__).parent / "made"
"""Code that was made when the package was built."""
_PREFIX = "machine_code-"
_MOST = 8
"""Folders of one root, each for another checkout."""


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
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path("~/.cache").expanduser()) / "arenaplan"


def open_file(path: Path) -> int:
    """Opens a file that may be one of ours, and returns its number. Raises OSError for anything else."""
    stat = path.stat()
    if not path.is_file() or stat.st_size > MOST_BYTES:
        raise OSError(f"{path} is no file of at most {MOST_BYTES} bytes")
    return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))


def write_file(path: Path, content: bytes) -> None:
    """Writes a file whole, or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".writing-", ignore_cleanup_errors=True) as stage:
        staged = Path(stage) / path.name
        staged.write_bytes(content)
        staged.replace(path)
