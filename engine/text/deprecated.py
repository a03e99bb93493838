"""Old public names: they still work in this version, and warn with the new name."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from engine.text.errors import OptionError

P = ParamSpec("P")
R = TypeVar("R")

KEYWORDS = {
    "bound": "caller_buffers",
    "bounds": "length_ranges",
    "cache": "plan_cache_size",
    "carried": "embedded",
    "pack": "prepack",
}
"""Keywords of `engine.compile` and `engine.make_plan`: old name to new name."""
EXPORTS = {"Carried": "EmbeddedPlan", "store_as": "cast_storage"}
"""Names of the package `engine`."""
METHODS = {"bound_costs": "length_range_costs", "story": "stage_report"}
"""Methods of `engine.Executable`."""
PROPERTIES = {"packed_bytes": "prepacked_bytes"}
"""Properties of `engine.Executable`."""
FLAGS = {"--bounds": "--length-ranges", "--no-pack": "--no-prepack"}
"""Options of the command line; no help text shows the old ones."""
SPELLINGS = {"--optimize": "--optimise"}
"""Options of the command line in another spelling, which is as good; no help text shows them."""
_USER_FRAME = 3
"""Frames from `warnings.warn` up to the user's line: `warn_of_old_name`, what calls it for the old name, the user."""


def accepts_old_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function as one that takes old keywords, too. Raises OptionError where both names are given."""

    @wraps(function)
    def renaming(*args: P.args, **kwargs: P.kwargs) -> R:
        for old in kwargs.keys() & KEYWORDS.keys():
            warn_of_old_name(f"{old}=", f"{KEYWORDS[old]}=")
        return function(*args, **cast(Any, _renamed(kwargs)))

    return renaming


def _renamed(options: Mapping[str, object]) -> dict[str, object]:
    for old, new in KEYWORDS.items():
        if old in options and new in options:
            raise OptionError(f"{old}= is the old name of {new}=; give {new}= alone")
    return {KEYWORDS.get(name, name): value for name, value in options.items()}


def warn_of_old_name(old: str, new: str) -> None:
    """Warns the user that a name has changed; the function that stands for the old name calls this itself."""
    warnings.warn(
        f"{old} is now called {new}; the old name will be removed", DeprecationWarning, stacklevel=_USER_FRAME
    )


def with_new_flags(argv: Sequence[str], warn: Callable[[str], None]) -> list[str]:
    """Returns a command line in which options have their new names, and hands a line for each old one to `warn`."""
    renamed = list(argv)
    for place, word in enumerate(argv):
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        if flag in SPELLINGS:
            renamed[place] = f"{SPELLINGS[flag]}{equals}{value}"
        if flag in FLAGS:
            warn(f"{flag} is now called {FLAGS[flag]}; the old name will be removed")
            renamed[place] = f"{FLAGS[flag]}{equals}{value}"
    return renamed
