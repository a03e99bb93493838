"""The door to numba. A kernel is a plain function on numpy arrays; `compiled` gives its twin in machine code.

Kernels live in `allocator/kernels/` and call only functions of that folder. Nothing is compiled, and numba is not even
loaded, before the first twin is asked for. Small problems run the plain functions: same source, same results.

Compiled code is kept on disk. numba watches the file of a compiled function alone, but code of one file is compiled
into what calls it from another. So the code lies in a folder that is named after the contents of all kernels' files.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from pickle import UnpicklingError
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
_BAD_CACHE = (OSError, EOFError, UnpicklingError, AttributeError)
"""The cache cannot be written (a full disk), or read: a file is cut short, or names classes of an older version."""


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
        except _BAD_CACHE:  # kernels open no files: this is the cache, and what is wrong in a kernel is raised again
            shutil.rmtree(_folder(), ignore_errors=True)  # so that the next process writes it anew
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
        with suppress(RuntimeError), _cache_in(_folder()):  # no folder to keep code in: each process compiles anew
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
    """Logs once a process that compiling takes a while, if there is something to compile."""
    events = import_module("numba.core.event")
    with events.install_listener("numba:compile", _listener()):
        yield


@cache
def _listener() -> Any:
    events = import_module("numba.core.event")

    class Announcer(events.Listener):  # type: ignore[misc,name-defined] # numba has no types
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said and event.data["dispatcher"].py_func.__module__.startswith("allocator."):
                self.said = True
                with aside():
                    _LOGGER.warning("compiling the solvers for this machine; this takes some seconds, once")

        def on_end(self, event: Any) -> None:
            pass

    return Announcer()
