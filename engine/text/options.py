"""Options that functions pass on: unknown names, flags that are no bool, help texts that several commands share."""

from collections.abc import Collection
from difflib import get_close_matches

from engine.text.errors import OptionError, UnknownOptionError

TIMEOUT = "time limit of strategies that search, such as 10s, 500ms or 2m (default: none)"
NODES = "most steps of strategies that search; with a seed, the plan is the same on every machine"
"""Help texts of the limits of a search, for the planner's options and for commands that do not plan."""

MOST_LISTED = 40
"""Names that a message lists."""
_COMPARED = 200
"""Characters of a name that are compared: the time of difflib grows with the square of that."""


def check_option_names(function: str, names: Collection[str], options: Collection[str]) -> None:
    """Raises UnknownOptionError for a name that is no option; the message has the one that was probably meant."""
    for name in names:
        if name not in options:
            raise UnknownOptionError(f"{function} has no option {name!r}; {close_to(name, options)}")


def close_to(name: str, names: Collection[str], most: int = MOST_LISTED) -> str:
    """Returns the end of a message about an unknown name: the known one that was probably meant, or all of them.

    Where nothing is like it, and there are more than `most`, the first ones are listed.
    """
    close = get_close_matches(name[:_COMPARED], names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are {', '.join(list(names)[:most])}{more}"


def check_flag(name: str, value: object) -> None:
    """Raises OptionError for anything but True and False: a text such as "no" would count as True."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} {value!r} is neither True nor False")
