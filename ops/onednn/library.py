"""The library oneDNN: finds it in the wheel `onednn-cpu-gomp`, loads it, and owns its engine and stream."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from allocator.machine_code.instructions import instructions, limited
from ops.onednn.declarations import CDEF, CPU, DEFAULT_STREAM, ISA, MAJOR, OPENMP, UNIMPLEMENTED
from ops.tensor.errors import OpError

DISTRIBUTION = "onednn-cpu-gomp"
_NAME = f"libdnnl.so.{MAJOR}"
_SENTENCE_OF_CFFI = ".  Additionally, "
"""Start of a sentence that cffi adds to the loader's message; it does not help where a path is loaded."""
_CACHED_PRIMITIVES = 64
"""Compiled primitives that the library keeps after their last use; its default is 1024. Fewer take less memory, but
more are compiled again."""


class LibraryError(OpError, RuntimeError):
    """The library is missing, cannot be used, or failed."""


class RefusedError(LibraryError):
    """The library has no implementation of a primitive."""


@frozen(eq=False)
class Library:
    """The loaded library, its engine and its stream. An object of `new` is destroyed after its last reference."""

    ffi: Any
    lib: Any
    engine: Any
    stream: Any

    def new(self, kind: str, function: str, *arguments: Any) -> Any:
        """Returns a new `dnnl_<kind>_t` from `dnnl_<function>`. Raises RefusedError or LibraryError."""
        return make(self.ffi, self.lib, kind, function, *arguments)

    def address(self, thing: Any) -> int:
        """Returns the address of a function or an object of the library."""
        return int(self.ffi.cast("intptr_t", thing))


def check(status: int, function: str) -> None:
    """Raises RefusedError or LibraryError unless a status is success."""
    if status == UNIMPLEMENTED:
        raise RefusedError(f"oneDNN has no implementation: {function}")
    if status:
        raise LibraryError(f"oneDNN's {function} returned status {status}")


def make(ffi: Any, lib: Any, kind: str, function: str, *arguments: Any) -> Any:
    """Returns a new object of the library, which is destroyed after its last reference."""
    place = ffi.new(f"dnnl_{kind}_t *")
    check(getattr(lib, f"dnnl_{function}")(place, *arguments), function)
    return ffi.gc(place[0], getattr(lib, f"dnnl_{kind}_destroy"))


def files(distribution: str) -> list[Path]:
    """Returns the files of an installed distribution. Raises LibraryError if it is not installed."""
    metadata: Any = import_module("importlib.metadata")  # takes as long to load as all of this package
    try:
        paths = metadata.files(distribution) or []
    except metadata.PackageNotFoundError as error:
        raise LibraryError("it is not installed: pip install -e '.[onednn]'") from error
    return [Path(str(path.locate())) for path in paths]


def open_library(paths: list[Path], ffi_maker: Callable[[], Any]) -> Library:
    """Returns the library among these files. Raises LibraryError if there is none that can be used here."""
    path = next((p for p in paths if p.name == _NAME), None)
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
    if limited():
        check(lib.dnnl_set_max_cpu_isa(ISA[instructions().name]), "set_max_cpu_isa")
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
        raise LibraryError("cffi is not installed: pip install -e '.[onednn]'") from error


@cache
def library() -> Library:
    """Returns the library, which is loaded once. Raises LibraryError if it cannot be used."""
    return open_library(files(DISTRIBUTION), _new_ffi)


@cache
def objection() -> str:
    """Returns why the library cannot be used here, in a few words; "" if it can."""
    try:
        library()
    except LibraryError as error:
        return str(error)
    return ""
