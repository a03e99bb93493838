"""The door to numba. A kernel is a plain function on numpy arrays; `compiled` gives its twin in machine code.

Kernels live in `allocator/kernels/` and call only functions of that folder. Nothing is compiled, and numba is not even
loaded, before the first twin is asked for. Small problems run the plain functions: same source, same results.

Compiled code is kept on disk. numba watches the file of a compiled function alone, but code of one file is compiled
into what calls it from another. So the code lies in a folder that is named after the contents of all kernels' files.
There, the code of each module is one file with a digest, written whole: numba itself works on a copy that no other
process sees. So nothing is loaded that was damaged, or that two processes wrote together.
"""

import atexit
import logging
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar

from allocator.progress import aside

P = ParamSpec("P")
R = TypeVar("R")
_KERNELS = "allocator.kernels."
_LOGGER = logging.getLogger("allocator")
_FOLDERS = "kernels-"
_MOST_FOLDERS = 8
"""The number of folders of compiled code that are kept, each for another state of the kernels' files."""
_DIGEST = 16
"""Bytes of a digest."""
_MOST_BYTES = 1 << 28
"""A file of more was not written here."""
_ROOMS: dict[str, Path] = {}
"""The folder of this process in which numba keeps the code of a module."""


def compiled(kernel: Callable[P, R]) -> Callable[P, R]:
    """Returns the compiled twin of a kernel: compiled on its first call ever, later loaded from disk."""
    twin: Callable[P, R] = _twin(kernel.__module__, kernel.__name__)
    return twin


def is_loaded() -> bool:
    """Returns whether a kernel was asked for. The first one loads numba, which takes longer than all later ones."""
    return _module.cache_info().currsize > 0


@cache
def _twin(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            with _announced():
                return getattr(_module(module, True), name)(*args)
        except Exception:  # whatever numba could not read or write; what is wrong in a kernel is raised again
            return getattr(_module(module, False), name)(*args)

    return wraps(getattr(import_module(module), name))(call)


@cache
def _module(name: str, cached: bool) -> ModuleType:
    """Returns a copy of a module in which each function is a numba dispatcher, so that kernels call compiled code.

    Functions that it imports from another module of kernels are those of that module's copy.
    """
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    functions = {key: f for key, f in vars(copy).items() if isinstance(f, FunctionType)}
    for key, function in functions.items():
        home = function.__module__
        if home == name:
            setattr(copy, key, _dispatcher(function, cached))
        elif home.startswith(_KERNELS):
            setattr(copy, key, getattr(_module(home, cached), function.__name__))
    return copy


def _dispatcher(function: FunctionType, cached: bool) -> Any:
    numba = import_module("numba")
    if cached:
        with suppress(RuntimeError, OSError), _cache_in(_room(function.__module__)):  # else each process compiles anew
            return numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    return numba.njit(nogil=True, no_cfunc_wrapper=True)(function)


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Lets numba keep the code of functions that are declared inside `with` in this folder."""
    config = import_module("numba").config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _room(module: str) -> Path:
    """Returns the folder of this process for the code of a module, with what is kept of it. Raises OSError."""
    if module not in _ROOMS:
        room = Path(mkdtemp(prefix="arenaplan-"))
        atexit.register(_remove, room, os.getpid())
        for name, content in _kept(_file(module)).items():
            (room / name).parent.mkdir(parents=True, exist_ok=True)
            (room / name).write_bytes(content)
        _ROOMS[module] = room
    return _ROOMS[module]


def _remove(room: Path, process: int) -> None:
    """Removes the folder of a process, if it is this one and not one that it was forked from."""
    if os.getpid() == process:
        shutil.rmtree(room, ignore_errors=True)


def keep(room: Path, path: Path) -> None:
    """Keeps the files of numba in a folder as one file, if they can be kept and are not what is kept already."""
    with suppress(OSError):
        files = {str(file.relative_to(room)): file.read_bytes() for file in sorted(room.rglob("*.nb?"))}
        if files != _kept(path):
            contents = pickle.dumps(files)
            with TemporaryDirectory(dir=path.parent, prefix=".writing-", ignore_cleanup_errors=True) as stage:
                staged = Path(stage) / path.name
                staged.write_bytes(_digest(path, contents) + contents)
                staged.replace(path)


def _kept(path: Path) -> dict[str, bytes]:
    """Returns the files of numba that are kept in one, by name; none where it is not as it was written."""
    try:
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return {}
    digest, contents = content[:_DIGEST], content[_DIGEST:]
    return dict(pickle.loads(contents)) if digest == _digest(path, contents) else {}


def _digest(path: Path, contents: bytes) -> bytes:
    """Returns the digest of contents that are kept in this file, and in no other one."""
    return blake2b(f"{path.parent.name}/{path.name}\n".encode() + contents, digest_size=_DIGEST).digest()


def _file(module: str) -> Path:
    return _folder() / f"{module.removeprefix(_KERNELS)}.{sys.implementation.cache_tag}.code"


def _folder() -> Path:
    """Returns the folder of code that was compiled from today's kernels; deletes the oldest beside a new one."""
    root = Path(import_module("numba").config.CACHE_DIR or _default_root())
    folder = root / f"{_FOLDERS}{_sources_digest()}"
    with suppress(OSError):
        if not folder.exists():
            others = sorted(root.glob(f"{_FOLDERS}*"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in others[_MOST_FOLDERS - 1 :]:
                shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    return folder


def _default_root() -> Path:
    """Returns the folder of Python's compiled files, or one of the user's cache where that is read-only."""
    beside = Path(__file__).parent / "__pycache__"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path("~/.cache").expanduser()) / "arenaplan"


@cache
def _sources_digest() -> str:
    """Returns a digest of the names and contents of all kernels' files."""
    files = sorted((Path(__file__).parent / "kernels").glob("*.py"))
    return blake2b(repr([(f.name, f.read_bytes()) for f in files]).encode(), digest_size=8).hexdigest()


@contextmanager
def _announced() -> Iterator[None]:
    """Logs once a process that compiling takes a while, if there is something to compile; keeps what was compiled."""
    events = import_module("numba.core.event")
    listener = _listener()
    with events.install_listener("numba:compile", listener):
        yield
    if listener.has_compiled:
        listener.has_compiled = False
        for module, room in tuple(_ROOMS.items()):
            keep(room, _file(module))


@cache
def _listener() -> Any:
    events = import_module("numba.core.event")

    class Announcer(events.Listener):  # type: ignore[misc,name-defined] # numba has no types
        said = False
        has_compiled = False

        def on_start(self, event: Any) -> None:
            if not self.said and self._is_ours(event):
                self.said = True
                with aside():
                    _LOGGER.warning("compiling the solvers for this machine; this takes some seconds, once")

        def on_end(self, event: Any) -> None:
            self.has_compiled |= self._is_ours(event)

        def _is_ours(self, event: Any) -> bool:
            return str(event.data["dispatcher"].py_func.__module__).startswith(_KERNELS)

    return Announcer()
