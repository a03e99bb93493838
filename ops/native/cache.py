"""The folders of compiled code on disk, so that code is only loaded if it was compiled of the sources of today.

numba watches the file of a compiled function alone. Much of ours stands in other files (records, emitters), and code
that was compiled with an older record would read its fields in wrong places. So each module of compiled code has a
folder of its own, named after the contents of all files of this project that it imports.
"""

import hashlib
import logging
import os
import pickle
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from allocator.machine_code.mutex import Mutex

Code = TypeVar("Code")

_IMPORTS = re.compile(r"^\s*from\s+(ops[\w.]*)\s+import\s+(\([^)]*\)|[^\n(]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")
_FOLDER = "native"
_MOST = 8
"""Folders of one module, each for another state of its sources."""
_DIGEST = 16
"""Bytes of a digest."""
_MOST_BYTES = 1 << 26
"""A file of more was not written here."""
_MUTEX = Mutex(threading.RLock)
_ADVICE = "so each process compiles them: set NUMBA_CACHE_DIR"
_TOLD: set[str] = set()
"""Folders of which the log has said that code cannot be kept there."""
_LOG = logging.getLogger("arenaplan")


def kept(function: Callable[..., Any], what: str, make: Callable[[bool], Code]) -> Code:
    """Returns make(True): numba compiles a function, as `what` says, and the code is stored on disk for later calls.

    numba works in a folder that nobody else sees, and its files are stored as one, with a digest. So nothing is loaded
    that was damaged, or that two processes wrote together. Where code cannot be stored, make(False) compiles it, and a
    line of the log says so, once.
    """
    config = import_module("numba").config
    with _MUTEX.lock:
        before = config.CACHE_DIR
        path = _path(function, what, Path(before) if before else _root())
        try:
            with TemporaryDirectory(prefix="arenaplan-", ignore_cleanup_errors=True) as room:
                config.CACHE_DIR = room
                return _with_stored(path, Path(room), make)
        except Exception as error:  # whatever numba could not write or read; what is wrong in `make` is raised again
            reason = str(error)
            if not isinstance(error, OSError):  # numba could not read what is stored: the next process writes it anew
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        finally:
            config.CACHE_DIR = before
        result = make(False)
        _tell(str(path.parent.parent), reason)
        return result


def _with_stored(path: Path, room: Path, make: Callable[[bool], Code]) -> Code:
    """Returns make(True), with the stored files in the room of numba; stores them where numba has written others."""
    stored = read_files(path)
    for name, content in stored.items():
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_bytes(content)
    result = make(True)
    files = {str(file.relative_to(room)): file.read_bytes() for file in sorted(room.rglob("*.nb?"))}
    if files != stored:
        try:
            write_files(path, files)
        except OSError as error:
            _tell(str(path.parent.parent), str(error))
    return result


def read_files(path: Path) -> dict[str, bytes]:
    """Returns the files that were stored there, by name; none where they are not as they were written."""
    try:
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return {}
    digest, contents = content[:_DIGEST], content[_DIGEST:]
    return dict(pickle.loads(contents)) if digest == _digest(path, contents) else {}


def write_files(path: Path, files: Mapping[str, bytes]) -> None:
    """Stores files in one, whole or not at all. Raises OSError."""
    contents = pickle.dumps(files)
    with TemporaryDirectory(dir=path.parent, prefix=".writing-", ignore_cleanup_errors=True) as stage:
        staged = Path(stage) / path.name
        staged.write_bytes(_digest(path, contents) + contents)
        staged.replace(path)


def _digest(path: Path, contents: bytes) -> bytes:
    """Returns the digest of contents that are stored in this file, and in no other one."""
    return hashlib.blake2b(f"{path.parent.name}/{path.name}\n".encode() + contents, digest_size=_DIGEST).digest()


def _tell(root: str, reason: str) -> None:
    if root not in _TOLD:
        _TOLD.add(root)
        reason = " ".join(reason.split())
        _LOG.warning(f"compiled kernels cannot be kept in {root} ({reason}), {_ADVICE}")


def _path(function: Callable[..., Any], what: str, root: Path) -> Path:
    """Returns the file for the code of a function. Each Python has files of its own."""
    key = hashlib.blake2b(f"{what} {sys.implementation.cache_tag}".encode(), digest_size=8).hexdigest()
    return _folder(function.__module__, root) / f"{function.__name__}-{key}.code"


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
