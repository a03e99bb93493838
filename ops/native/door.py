"""The door to compiled calls: loads the modules that import numba, and compiles their functions, on first use."""

import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ops.native.cache import kept
from ops.tensor.spec import Array

CONTRACT = ("contract",)
"""A multiplication and an addition may become one instruction; nothing is reordered, NaN and infinities stay."""
_RUNNERS = "ops.native.program_code"
_ALIVE: list[Any] = []


@cache
def address(module: str, name: str, fastmath: tuple[str, ...] = CONTRACT) -> int:
    """Returns the address of `module.name`, a function of (arguments, part, parts), compiled as a function of C.

    The code is stored on disk, and used until a file changes that it is compiled of.
    """
    return int(_compiled(module, name, "void(int64, int64, int64)", fastmath).address)


@cache
def foreign_address(module: str, name: str) -> int:
    """Returns the address of `module.name`, a function of four words, compiled as an `int` function of C.

    For steps of the kind FOREIGN.
    """
    return int(_compiled(module, name, "int32(int64, int64, int64, int64)", CONTRACT).address)


@cache
def run_alone() -> Callable[[Array], tuple[int, int]]:
    """Returns f(table), which runs all steps on this thread: the number of the step that failed (or -1), its status."""
    runner: Callable[[Array], tuple[int, int]] = _runner("compile_alone")
    return runner


@cache
def run_forked() -> Callable[[Array, Array], tuple[int, int]]:
    """Returns f(table, library): as `run_alone`, with compiled steps in parts on threads of OpenMP, like the library.

    `library` is an OPENMP record (`ops.native.call`).
    """
    runner: Callable[[Array, Array], tuple[int, int]] = _runner("compile_forked")
    return runner


@cache
def region_address(module: str, name: str) -> int:
    """Returns the address of `module.name`, a function of one word, compiled as a `void` function of C for OpenMP."""
    return int(_compiled(module, name, "void(int64)", CONTRACT).address)


@cache
def run_linger() -> Callable[[int, int], bool]:
    """Returns f(address, seen): whether the word at an address changes from `seen` within a millisecond or so."""
    runner: Callable[[int, int], bool] = _runner("compile_linger")
    return runner


@cache
def run_part() -> Callable[[Array, Array, int], None]:
    """Returns f(table, state, threads): one thread's part of a run; see `ops.native.program_code`."""
    runner: Callable[[Array, Array, int], None] = _runner("compile_part")
    return runner


@cache
def run_locate() -> Callable[[Array, Array, Array], None]:
    """Returns f(words, spans, pointee): where words point to the spans that rows tell, they count from their origins.

    A row has the first byte, the end and the origin. `pointee` takes the row of each word; -1 for a number.
    """
    runner: Callable[[Array, Array, Array], None] = _runner("compile_locate", "ops.native.words_code")
    return runner


def _runner(maker: str, module: str = _RUNNERS) -> Any:
    return getattr(import_module(module), maker)()


def compiled_once(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Returns numba.njit(signature, nogil=True, **options)(function), whose code is stored on disk."""
    numba = import_module("numba")
    return kept(
        function,
        f"njit {signature} {options}",
        lambda is_cached: numba.njit(signature, nogil=True, cache=is_cached, **options)(function),
    )


def _compiled(module: str, name: str, signature: str, fastmath: tuple[str, ...]) -> Any:
    numba = import_module("numba")
    function = getattr(import_module(module), name)

    def make(is_cached: bool) -> Any:
        return numba.cfunc(signature, cache=is_cached, fastmath=set(fastmath), error_model="numpy")(function)

    with warnings.catch_warnings():
        # numba's doubts about its own inlining, which nobody who runs a network can do anything about
        warnings.simplefilter("ignore", numba.errors.NumbaIRAssumptionWarning)
        compiled = kept(function, f"cfunc {signature} {fastmath}", make)
    _ALIVE.append(compiled)
    return compiled
