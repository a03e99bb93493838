"""Names that people type: those of the trace, and the nearest ones where there is none."""

from collections.abc import Collection
from difflib import get_close_matches

from engine.text.errors import OptionError

_LONGEST = 80
"""Of a name in a sentence."""
_COMPARED = 200
"""Characters of names that are compared: difflib takes the square of that."""
_LEAST_ALIKE = 0.4


class UnknownNameError(OptionError, KeyError):
    """A tensor or operator that a plan does not have; the message has the nearest names."""

    def __str__(self) -> str:  # KeyError shows the repr of its message
        return str(self.args[0])


def shown(name: str) -> str:
    """A name on one line of a page, whatever is in it: no control characters, and not too long."""
    return _short("".join(c if c.isprintable() else ascii(c)[1:-1] for c in name))


def quoted(name: str) -> str:
    """The same as Python would write it."""
    return _short(repr(name))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}...{text[-17:]}"


def check_name(what: str, name: str, known: Collection[str], model: str) -> None:
    """Raises UnknownNameError for a name that is not known."""
    if name in known:
        return
    short = {other[:_COMPARED]: other for other in reversed(list(known))}
    near = get_close_matches(name[:_COMPARED], list(short), 3, _LEAST_ALIKE)
    inside = [other for other in known if name and name in other and other not in near]
    hints = ", ".join(quoted(other) for other in [*(short[n] for n in near), *inside][:3])
    more = f"did you mean {hints}?" if hints else f"`arenaplan trace` lists all {len(known)} of them"
    raise UnknownNameError(f"{shown(model)} has no {what} {quoted(name)}; {more}")
