"""The folders of compiled code on disk, so that code is only loaded if it was compiled of the sources of today.

numba watches the file of a compiled function alone. Much of ours stands in other files (records, emitters), and code
that was compiled with an older record would read its fields in wrong places. So each module of compiled code has a
folder of its own, named after the contents of all files of this project that it imports.
"""

import hashlib
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_IMPORTS = re.compile(r"^\s*from\s+(ops[\w.]*)\s+import\s+(\([^)]*\)|[^\n(]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")
_FOLDER = "native"
_MOST = 8
"""Folders of one module, each for another state of its sources."""
_LOCK = threading.RLock()
_LOG = logging.getLogger("arenaplan")


@contextmanager
def code_cache(module: str) -> Iterator[bool]:
    """Stores what numba compiles of that module inside `with` in its folder, and deletes its oldest folders.

    Yields whether it can be stored: where no such folder can be created, a line of the log says so, once.
    """
    config = import_module("numba").config
    with _LOCK:
        before = config.CACHE_DIR
        folder = _folder(module, Path(before) if before else _root())
        config.CACHE_DIR = str(folder)
        try:
            yield _can_be_written(folder)
        finally:
            config.CACHE_DIR = before


def _can_be_written(folder: Path) -> bool:
    if folder.is_dir() and os.access(folder, os.W_OK):
        return True
    _tell(str(folder.parent))
    return False


@cache
def _tell(root: str) -> None:
    _LOG.warning("compiled kernels cannot be kept in %s, so each process compiles them: set NUMBA_CACHE_DIR", root)


def _folder(module: str, root: Path) -> Path:
    folder = root / f"{module}-{digest(module)}"
    with suppress(OSError):
        if not folder.exists():
            for old in _oldest(root.glob(f"{module}-*")):
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    return folder


def _oldest(folders: Iterable[Path]) -> list[Path]:
    """Returns all but the few folders that were used last: other checkouts may have theirs beside ours."""
    return sorted(folders, key=lambda path: path.stat().st_mtime_ns, reverse=True)[_MOST - 1 :]


def digest(module: str) -> str:
    """Returns a digest of names and contents of all files that a module is compiled of, wherever they lie."""
    stats = [(path, path.stat()) for path in sources(module)]
    contents = sorted((path.name, _content(path, stat.st_size, stat.st_mtime_ns)) for path, stat in stats)
    return hashlib.blake2b(repr(contents).encode(), digest_size=8).hexdigest()


@cache
def _content(path: Path, _: int, __: int) -> bytes:
    """Returns the digest of a file; its size and time are those of the cached value."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).digest()


def sources(module: str) -> set[Path]:
    """Returns the files of a module and of all modules of `ops` that it imports, those imported by them, and so on."""
    files: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file(waiting.pop())
        if path is not None and path not in files:
            files.add(path)
            waiting += _imported(path)
    return files


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """Returns modules that a file imports, and names that may be modules."""
    imports = _IMPORTS.findall(path.read_text(encoding="utf-8"))
    return tuple(name for home, names in imports for name in (home, *(f"{home}.{n}" for n in _NAME.findall(names))))


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name inside a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _root() -> Path:
    """Returns the folder beside the compiled Python of this package, or in the user's cache if that is read-only."""
    beside = Path(__file__).parent / "__pycache__"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK):
        return beside / _FOLDER
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path("~/.cache").expanduser()) / "arenaplan" / _FOLDER
