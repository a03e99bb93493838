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
    """The address of `module.name`, a plain function of (words, part, parts), compiled as a function of C.

    What is compiled is kept on disk, for as long as no file changes that it is made of.
    """
    return int(_compiled(module, name, "void(int64, int64, int64)", fastmath).address)


@cache
def foreign_address(module: str, name: str) -> int:
    """The address of `module.name`, a plain function of four words, compiled as an `int` function of C.

    For steps of the kind FOREIGN.
    """
    return int(_compiled(module, name, "int32(int64, int64, int64, int64)", CONTRACT).address)


@cache
def run_alone() -> Callable[[Array], tuple[int, int]]:
    """f(table): runs all steps on this thread; the number of the foreign step that failed (or -1), and its status."""
    made: Callable[[Array], tuple[int, int]] = _runner("compile_alone")
    return made


@cache
def run_forked() -> Callable[[Array, Array], tuple[int, int]]:
    """f(table, library): as `run_alone`, with compiled steps in parts on threads of OpenMP, as a library's own are.

    `library` has the addresses of GOMP_parallel, omp_get_thread_num and omp_get_num_threads, that of `region`, and how
    many threads there shall be.
    """
    made: Callable[[Array, Array], tuple[int, int]] = _runner("compile_forked")
    return made


@cache
def region_address(module: str, name: str) -> int:
    """The address of `module.name`, a plain function of one word, compiled as a `void` function of C for OpenMP."""
    return int(_compiled(module, name, "void(int64)", CONTRACT).address)


@cache
def run_linger() -> Callable[[int, int], bool]:
    """f(address, seen): whether the word at an address becomes another one than `seen` within a millisecond or so."""
    made: Callable[[int, int], bool] = _runner("compile_linger")
    return made


@cache
def run_part() -> Callable[[Array, Array, int], None]:
    """f(table, state, wanted): one thread's part of a run; see `ops.native.program_code`."""
    made: Callable[[Array, Array, int], None] = _runner("compile_part")
    return made


def _runner(maker: str) -> Any:
    with kept(_RUNNERS) as keeps:
        return getattr(import_module(_RUNNERS), maker)(keeps)


def _compiled(module: str, name: str, signature: str, fastmath: tuple[str, ...]) -> Any:
    numba = import_module("numba")
    function = getattr(import_module(module), name)
    with kept(module) as keeps, warnings.catch_warnings():
        # numba's doubts about its own inlining, which nobody who runs a network can do anything about
        warnings.simplefilter("ignore", numba.errors.NumbaIRAssumptionWarning)
        made = numba.cfunc(signature, cache=keeps, fastmath=set(fastmath), error_model="numpy")(function)
    _ALIVE.append(made)
    return made
