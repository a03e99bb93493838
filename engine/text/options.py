"""Checks of keyword arguments that functions pass on: unknown names, and flags that are no bool."""

from collections.abc import Collection
from difflib import get_close_matches

from engine.text.errors import OptionError, UnknownOptionError


def check_option_names(function: str, names: Collection[str], options: Collection[str]) -> None:
    """Raises UnknownOptionError for a name that is no option; the message has the one that was probably meant."""
    for name in names:
        if name not in options:
            close = get_close_matches(name, options, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(options)}"
            raise UnknownOptionError(f"{function} has no option {name!r}; {hint}")


def check_flag(name: str, value: object) -> None:
    """Raises OptionError for anything but True and False: a text such as "no" would count as True."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} {value!r} is neither True nor False")
