"""Attributes of operators: a name, a default, and a reader that checks a value and gives it its final form."""

from collections.abc import Callable
from enum import Enum
from operator import index
from typing import Any, Final

import numpy as np
from attrs import frozen

from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.spec import as_dtype, several


class _Default(Enum):
    """A default that stays itself when it is pickled or copied."""

    REQUIRED = "required"


REQUIRED: Final = _Default.REQUIRED
"""Default of an attribute that has none."""


@frozen(eq=False)
class Attribute:
    """An attribute: its name, its check and its default.

    `convert` returns the checked value, or raises TypeError or ValueError.
    """

    name: str
    convert: Callable[[Any], object]
    default: object = REQUIRED

    def read(self, value: object) -> object:
        """Returns the checked value. Raises AttributeValueError."""
        try:
            return self.convert(value)
        except (TypeError, ValueError, OverflowError, DtypeError) as error:
            raise AttributeValueError(f"attribute {self.name!r} cannot be {value!r}: {error}") from error


def integer(value: Any) -> int:
    """Returns a plain int; takes no bool, no float."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("an integer is wanted")
    return index(value)


def integers(value: Any) -> tuple[int, ...]:
    """Returns a tuple of plain ints; one integer is a tuple of one."""
    return tuple(integer(v) for v in several(value))


def number(value: Any) -> float:
    """Returns a float."""
    return float(value)


def numbers(value: Any) -> tuple[float, ...]:
    """Returns a tuple of floats; one number is a tuple of one."""
    return tuple(float(v) for v in several(value))


def flag(value: Any) -> bool:
    """Returns a bool; takes 0 and 1, too."""
    if value not in (0, 1, False, True):
        raise ValueError("true or false is wanted")
    return bool(value)


def element_type(value: Any) -> np.dtype[Any]:
    """Returns a supported numpy dtype."""
    return as_dtype(value)


def one_of(*choices: str) -> Callable[[Any], str]:
    """Returns a converter that takes one of these words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} is wanted")
        return str(value)

    return read


def optional(convert: Callable[[Any], object]) -> Callable[[Any], object]:
    """Returns a converter that takes None, or what `convert` takes."""

    def read(value: Any) -> object:
        return None if value is None else convert(value)

    return read
