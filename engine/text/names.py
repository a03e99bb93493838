"""Names of tensors and operators may hold any characters; these functions make them safe to show and to write."""

import unicodedata
from collections.abc import Iterable

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories of characters with no picture of their own. XML forbids most of them; some turn the order of others."""
_DOTS = "…"


def printable(name: str, most: int = 120) -> str:
    """Returns a name on one line, of at most that many characters: the middle of a longer one is left out.

    Characters that cannot be shown become boxes or the control pictures of Unicode (from U+2400 on), such as ␊ for a
    newline.
    """
    return "".join(map(_shown, with_ends(name, most - 1) if len(name) > most else name))


def _shown(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\u2421"
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _HIDDEN else character


def with_ends(text: str, count: int) -> str:
    """Returns `count` characters of a text, from both of its ends, with dots where the others were."""
    tail = count // 2
    return f"{text[: count - tail]}{_DOTS}{text[len(text) - tail :]}"


def escaped(name: str) -> str:
    """Returns a whole name on one line: characters that are not printable are written as Python escapes them."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def to_unicode(name: str) -> str:
    """Returns a name with escapes instead of lone surrogates, which UTF-8 cannot encode."""
    return name.encode("utf-8", "backslashreplace").decode()


def without_comments(name: str) -> str:
    """Returns a name on one line without "#", which begins a comment in some formats; the wide "#" replaces it."""
    return printable(name).replace("#", "\N{FULLWIDTH NUMBER SIGN}")


def free_name(name: str, taken: set[str]) -> str:
    """Returns the name, with a number from 2 on behind it where it is taken. The result is then taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    taken.add(free)
    return free


def few(names: Iterable[str], most: int = 4) -> str:
    """Returns the first names with commas between them, and how many more there are."""
    listed = list(names)
    more = [f"{len(listed) - most} more"] if len(listed) > most else []
    return ", ".join((*listed[:most], *more))
