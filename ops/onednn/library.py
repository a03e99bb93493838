"""The door to oneDNN: finds the library of the wheel `onednn-cpu-gomp`, loads it, and owns its engine and stream."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from ops.onednn.declarations import CDEF, CPU, DEFAULT_STREAM, MAJOR, OPENMP, UNIMPLEMENTED
from ops.tensor.errors import OpError

DISTRIBUTION = "onednn-cpu-gomp"
_NAME = f"libdnnl.so.{MAJOR}"
_SENTENCE_OF_CFFI = ".  Additionally, "
"""What it found out elsewhere, behind what the loader said of the file: of no use for a path."""
_CACHED_PRIMITIVES = 64
"""What the library itself keeps of code that nobody uses any more; its own choice is 1024."""


class LibraryError(OpError, RuntimeError):
    """The library is not there, cannot be used, or failed."""


class RefusedError(LibraryError):
    """The library has no implementation of what was asked for."""


@frozen(eq=False)
class Library:
    """The loaded library, and what every call of it needs. Whatever `new` made is destroyed with its last user."""

    ffi: Any
    lib: Any
    engine: Any
    stream: Any

    def new(self, kind: str, function: str, *given: Any) -> Any:
        """What `dnnl_<function>` makes: a `dnnl_<kind>_t`. Raises RefusedError or LibraryError."""
        return make(self.ffi, self.lib, kind, function, *given)

    def address(self, thing: Any) -> int:
        """Where a function or an object of the library lies."""
        return int(self.ffi.cast("intptr_t", thing))


def check(status: int, function: str) -> None:
    """Raises RefusedError or LibraryError for what is no success."""
    if status == UNIMPLEMENTED:
        raise RefusedError(f"oneDNN has no implementation: {function}")
    if status:
        raise LibraryError(f"oneDNN's {function} returned status {status}")


def make(ffi: Any, lib: Any, kind: str, function: str, *given: Any) -> Any:
    """What a function of the library makes, destroyed with its last user."""
    place = ffi.new(f"dnnl_{kind}_t *")
    check(getattr(lib, f"dnnl_{function}")(place, *given), function)
    return ffi.gc(place[0], getattr(lib, f"dnnl_{kind}_destroy"))


def files(distribution: str) -> list[Path]:
    """Files of an installed distribution. Raises LibraryError where it is not installed."""
    metadata: Any = import_module("importlib.metadata")  # takes as long to load as all of this package
    try:
        found = metadata.files(distribution) or []
    except metadata.PackageNotFoundError as error:
        raise LibraryError("it is not installed: pip install 'arenaplan[onednn]'") from error
    return [Path(str(f.locate())) for f in found]


def open_library(found: list[Path], ffi_maker: Callable[[], Any]) -> Library:
    """The library among these files. Raises LibraryError where there is none, or none that can be used here."""
    path = next((p for p in found if p.name == _NAME), None)
    if path is None:
        raise LibraryError(f"{DISTRIBUTION} has no file {_NAME}")
    ffi = ffi_maker()
    ffi.cdef(CDEF)
    try:
        lib = ffi.dlopen(str(path.resolve()))
        _check_version(lib.dnnl_version())
    except (OSError, AttributeError) as error:
        said = str(error).split(_SENTENCE_OF_CFFI)[0]
        raise LibraryError(f"it cannot be loaded: {said}") from error
    engine = make(ffi, lib, "engine", "engine_create", CPU, 0)
    stream = make(ffi, lib, "stream", "stream_create", engine, DEFAULT_STREAM)
    check(lib.dnnl_set_primitive_cache_capacity(_CACHED_PRIMITIVES), "set_primitive_cache_capacity")
    return Library(ffi, lib, engine, stream)


def _check_version(version: Any) -> None:
    if version.major != MAJOR:
        raise LibraryError(f"it is version {version.major}.{version.minor}, not {MAJOR}.x")
    if version.cpu_runtime != OPENMP:
        raise LibraryError("it was not built for OpenMP")


def _new_ffi() -> Any:
    try:
        return import_module("cffi").FFI()
    except ImportError as error:
        raise LibraryError("cffi is not installed: pip install 'arenaplan[onednn]'") from error


@cache
def library() -> Library:
    """The library, loaded once. Raises LibraryError where it cannot be used."""
    return open_library(files(DISTRIBUTION), _new_ffi)


@cache
def objection() -> str:
    """Why the library cannot be used here, in a few words; nothing where it can."""
    try:
        library()
    except LibraryError as error:
        return str(error)
    return ""
