"""Plain functions on arrays and integers as entries: their types, and calls of their machine code.

    @entry(ARRAYS, fastmath=EXACT)
    def add(column: Longs, number: int) -> None: ...

    compiled(add)(np.zeros(3, np.int64), 5)

The types of parameters say which arrays the machine code takes, so that it can be made before anything is called. An
array is given as its address and its lengths, an integer as a word, a NamedTuple as its fields. The result is an
integer or None.
"""

from array import array
from collections.abc import Callable, Iterator
from ctypes import addressof, c_char
from functools import cache, wraps
from types import NoneType
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
from attrs import frozen

from allocator.machine_code.door import function as native
from allocator.machine_code.entry import Function

P = ParamSpec("P")
R = TypeVar("R")


@frozen
class Layout:
    """A dense array: the type of its elements, and its number of dimensions."""

    dtype: np.dtype[Any]
    ndim: int


LONGS, TABLE = Layout(np.dtype(np.int64), 1), Layout(np.dtype(np.int64), 2)
DOUBLES, DOUBLE_TABLE = Layout(np.dtype(np.float64), 1), Layout(np.dtype(np.float64), 2)
FLAGS = Layout(np.dtype(np.int8), 1)
Longs = Annotated[npt.NDArray[Any], LONGS]
Table = Annotated[npt.NDArray[Any], TABLE]
Doubles = Annotated[npt.NDArray[Any], DOUBLES]
DoubleTable = Annotated[npt.NDArray[Any], DOUBLE_TABLE]
"""Types of parameters. The elements are Any, which a checker of types takes for Python's numbers."""


def parameters(function: Callable[..., Any]) -> list[Any]:
    """Returns the type of each parameter: int, a Layout, or a NamedTuple of arrays. Raises TypeError for others."""
    hints = get_type_hints(function, include_extras=True)
    result = hints.pop("return", None)
    if result not in (int, NoneType):
        raise TypeError(f"{function.__name__} returns {result}; machine code returns an integer or None")
    return [_kind(function, name, hint) for name, hint in hints.items()]


def _kind(function: Callable[..., Any], name: str, hint: Any) -> Any:
    layouts = [about for about in getattr(hint, "__metadata__", ()) if isinstance(about, Layout)]
    if hint is not int and not layouts and not hasattr(hint, "_fields"):
        raise TypeError(f"parameter {name} of {function.__name__} is {hint}; machine code takes no such values")
    return layouts[0] if layouts else hint


def fields(record: Any) -> list[Layout]:
    """Returns the layouts of the fields of a NamedTuple."""
    return [_kind(record, name, hint) for name, hint in get_type_hints(record, include_extras=True).items()]


@cache
def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the machine code of an entry as a function of Python, which takes the same arguments.

    Raises TypeError for an array of another type, and OverflowError for an integer of more than 64 bits.
    """
    call = native(function.__module__, function.__name__)
    kinds = parameters(function)
    flat = [kind for one in kinds for kind in (fields(one) if hasattr(one, "_fields") else (one,))]
    is_function = get_type_hints(function)["return"] is int

    @wraps(function)
    def run(*args: Any) -> Any:
        words = array("q")
        for kind, value in zip(flat, _flattened(args), strict=True):
            if kind is int:
                words.append(value)
            else:
                words.append(_address(function, kind, value))
                words.extend(value.shape)
        result = call(words.buffer_info()[0])
        return result if is_function else None

    return run  # type: ignore[return-value] # called by position


def _flattened(args: tuple[Any, ...]) -> Iterator[Any]:
    for value in args:
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


def _address(function: Function, kind: Layout, value: Any) -> int:
    """Returns the address of an array that has this layout."""
    if not isinstance(value, np.ndarray) or value.dtype != kind.dtype or value.ndim != kind.ndim:
        raise TypeError(f"{function.__name__} takes arrays of {kind.dtype} with {kind.ndim} dimensions, not {value!r}")
    if not value.flags.c_contiguous:
        raise TypeError(f"{function.__name__} takes dense arrays, not one with strides {value.strides}")
    if value.flags.writeable and value.size:
        return addressof(c_char.from_buffer(value.data))  # a quarter of the time of what follows
    return value.ctypes.data
