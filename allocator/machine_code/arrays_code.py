"""Makes functions of words of plain functions on arrays; see `allocator.machine_code.arrays`. Imports numba."""

from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any, get_type_hints

from numba import carray  # type: ignore[attr-defined, unused-ignore]

from allocator.machine_code.arrays import Layout, fields, parameters
from allocator.machine_code.memory import jitable, longs, pointer

_CALLABLE: set[FunctionType] = set()
"""Plain functions that compiled code can call."""


def of_words(function: Any) -> Callable[[int], int]:
    """Returns f(words), which calls the function with the arguments that lie at the address `words`."""
    _make_callable(function)
    names: dict[str, Any] = {"function": function, "carray": carray, "pointer": pointer, "longs": longs}
    places = count()
    arguments = [_argument(kind, places, names) for kind in parameters(function)]
    call = f"function({', '.join(arguments)})"
    result = call if get_type_hints(function)["return"] is int else f"{call} or 0"
    source = f"def call(at):\n    words = longs(at, {next(places)})\n    return {result}\n"
    exec(source, names)  # numba compiles source, and knows no call with a list of arguments of different types
    wrapper: Callable[[int], int] = names["call"]
    return wrapper


def _argument(kind: Any, places: "count[int]", names: dict[str, Any]) -> str:
    """Returns the expression of an argument; what it names is added to `names`."""
    if kind is int:
        return f"words[{next(places)}]"
    if isinstance(kind, Layout):
        names[kind.dtype.name] = kind.dtype
        address = next(places)
        shape = "".join(f"words[{next(places)}], " for _ in range(kind.ndim))
        return f"carray(pointer(words[{address}]), ({shape}), {kind.dtype.name})"
    names[kind.__name__] = kind
    return f"{kind.__name__}({', '.join(_argument(one, places, names) for one in fields(kind))})"


def _make_callable(function: FunctionType) -> None:
    """Lets compiled code call a function, and all those that it calls. An interrupt leaves out none for good."""
    for called in _reached(function) - _CALLABLE:
        _CALLABLE.add(jitable(called))


def _reached(function: FunctionType) -> set[FunctionType]:
    """Returns a function, those that it calls, those called by them, and so on."""
    reached, waiting = set[FunctionType](), [function]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            called = (one.__globals__.get(name) for name in one.__code__.co_names)
            waiting += [other for other in called if isinstance(other, FunctionType)]
    return reached
