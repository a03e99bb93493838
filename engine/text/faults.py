"""The door through which no exception leaves that is not documented: loading, planning and running stand behind it.

What is documented passes. What escapes from anywhere else is a fault of this program, and says so, with its cause and
the operator at which it happened.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import TracebackType
from typing import ParamSpec, TypeVar

from allocator.errors import AllocatorError
from engine.text.errors import EngineError, InternalError, NoMemoryError
from ops.tensor.errors import OpError

P = ParamSpec("P")
R = TypeVar("R")
DOCUMENTED = (EngineError, OpError, AllocatorError, OSError, Warning)
"""The errors that callers may expect. Warnings are raised where the caller asks for that."""
_AT = "at operator "
_REPORT = (
    "This is a fault of arenaplan, or of an operator of your own; "
    "please report it, with the model and all lines of this error"
)


class Door:
    """A context that raises what is not documented again as an InternalError, or where memory ran out, NoMemoryError.

    `doing` says what the work is: "planning graph 'resnet'".
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, MemoryError) and not isinstance(error, DOCUMENTED):
            reason = f": {_one_line(error)}" if str(error) else ""
            raise NoMemoryError(f"not enough memory while {self._doing}{_place(error)}{reason}") from error
        if isinstance(error, Exception) and not isinstance(error, DOCUMENTED):
            what = f"{self._doing}{_place(error)}: {type(error).__name__}: {_one_line(error)}"
            raise InternalError(f"{what}. {_REPORT}") from error


def behind_door(doing: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that runs a function inside a Door. A call that does not fit the function is the caller's."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function)

        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            parameters.bind(*args, **kwargs)
            with Door(doing):
                return function(*args, **kwargs)

        return guarded

    return decorate


def name_operator(error: Exception, name: str) -> None:
    """Notes at which operator an exception happened, so that the door can say it. The innermost one counts."""
    if not _place(error):
        error.add_note(f"{_AT}{name!r}")


def _place(error: BaseException) -> str:
    return next((f", {note}" for note in getattr(error, "__notes__", ()) if note.startswith(_AT)), "")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
