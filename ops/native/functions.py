"""Calls of compiled functions that return a number, with a record of arguments each: thunks, but no native steps."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from allocator.machine_code.door import function
from ops.native.call import Argument, arguments
from ops.native.records import Layout
from ops.tensor.spec import Array


@frozen(eq=False)
class Function:
    """A call of a compiled function that returns a number, with its arguments; `keep` is what must live as long."""

    function: Callable[[int], int]
    args: Array
    keep: tuple[Any, ...]

    def __call__(self) -> int:
        """Runs the function, on this thread."""
        return self.function(self.args.ctypes.data)


def function_call(module: str, name: str, layout: Layout, **values: Argument) -> Function:
    """Returns a call of an entry with the signature CALL; its record is passed as by `native_call`."""
    args, arrays = arguments(layout, values)
    return Function(function(module, name), args, arrays)
