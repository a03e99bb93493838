"""Declares the functions of modules of compiled code that are called from outside.

    @entry()                                       # void(arguments, part, parts)
    def normalise(address: int, part: int, parts: int) -> None:

Only the maker of machine code imports such modules; callers name the module and the function.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from attrs import frozen

from allocator.machine_code.errors import SymbolError

Function = TypeVar("Function", bound=Callable[..., Any])
STRIPE = "void(int64, int64, int64)"
"""The signature of a function that does one of several parts of its work: (arguments, part, parts)."""
FOREIGN = "int32(int64, int64, int64, int64)"
"""The signature of a function that is called like those of libraries."""
REGION = "void(int64)"
"""The signature of a function that OpenMP calls."""
CALL = "int64(int64)"
"""The signature of a function that gets the address of its arguments and returns a number (`door.function`)."""
ARRAYS = "arrays"
"""Stands for CALL where a plain function takes arrays and integers: its arguments are read for it (see `arrays`)."""
EXACT: tuple[str, ...] = ()
"""Each operation is done as it is written."""
CONTRACT = ("contract",)
"""A multiplication and an addition may become one instruction; nothing is reordered, NaN and infinities stay."""
ANY_ORDER = (*CONTRACT, "reassoc")
"""Sums may be taken in another order, the same in every run."""


@frozen
class Entry:
    """A function of Python, its signature as a function of C in numba's words, what LLVM may do with numbers, and the
    features of the processor without which it is never called.
    """

    function: Callable[..., Any]
    signature: str
    fastmath: tuple[str, ...]
    needs: tuple[str, ...]


_ENTRIES: dict[tuple[str, str], Entry] = {}


def entry(
    signature: str = STRIPE, *, fastmath: tuple[str, ...] = CONTRACT, name: str = "", needs: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Returns a decorator that declares a function, under another name if one is given."""

    def declare(function: Function) -> Function:
        _ENTRIES[function.__module__, name or function.__name__] = Entry(function, signature, fastmath, needs)
        return function

    return declare


def find_entry(module: str, name: str) -> Entry:
    """Returns a declared function, and imports its module for it. Raises SymbolError where nothing is declared."""
    import_module(module)
    if (module, name) not in _ENTRIES:
        raise SymbolError(
            f"module {module} declares no entry {name!r}: {', '.join(entries_of(module)) or 'none at all'}"
        )
    return _ENTRIES[module, name]


def entries_of(module: str) -> list[str]:
    """Returns the names of all functions that a module declares."""
    import_module(module)
    return [name for home, name in _ENTRIES if home == module]
