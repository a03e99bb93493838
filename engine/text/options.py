"""Keywords of functions that pass them on: names that do not exist, and flags that are neither on nor off."""

from collections.abc import Collection
from difflib import get_close_matches

from engine.text.errors import OptionError, UnknownOptionError


def check_option_names(function: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises UnknownOptionError, with the name that was probably meant."""
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise UnknownOptionError(f"{function} has no option {name!r}; {hint}")


def check_flag(name: str, value: object) -> None:
    """Raises OptionError for anything but True and False: a text such as "no" would count as True."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} {value!r} is neither True nor False")
