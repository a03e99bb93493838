"""Texts in pictures: names that may hold anything, and how wide they are."""

import unicodedata

_WIDTHS = {"ijlI.,:;'|! ": 0.28, "frt()[]/\\-·": 0.34, "mwMW@%&": 0.86}
_SHARES = {character: share for characters, share in _WIDTHS.items() for character in characters}
"""Width of a letter for a height of 1, rounded up from Helvetica's; others by what they are."""
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories of characters with no picture of their own. XML forbids most of them; some turn the order of others."""
_DOTS = "…"


def printable(name: str, most: int = 120) -> str:
    """A name on one line: the middle of a long one is left out, and what cannot be shown is a box or a control picture.

    The control pictures are Unicode's (U+2400 and what follows), such as ␊ for a newline.
    """
    if len(name) > most:
        name = _ends(name, most - 1)
    return "".join(map(_shown, name))


def _shown(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\u2421"
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _HIDDEN else character


def text_width(text: str, size: float) -> float:
    """Pixels that a text takes at most, roughly, in the fonts of browsers without serifs."""
    return size * sum(map(_share, text))


def _share(character: str) -> float:
    if character in _SHARES:
        return _SHARES[character]
    if ord(character) > 0x2000 and character != _DOTS:
        return 1.05
    return 0.7 if character.isupper() else 0.57


def fitted(text: str, size: float, room: float) -> str:
    """The text, or both its ends where it would be wider than the room: names often differ in a number at the end.

    Nothing if fewer than four letters would stay.
    """
    if text_width(text, size) <= room:
        return text
    kept = next((n for n in range(min(len(text) - 1, int(room)), 3, -1) if text_width(_ends(text, n), size) <= room), 0)
    return _ends(text, kept) if kept else ""


def wrapped(text: str, size: float, room: float) -> list[str]:
    """Its words in lines that are no wider than the room, if words are not."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _ends(text: str, kept: int) -> str:
    """So many letters of it, with dots where the others were."""
    tail = kept // 2
    return f"{text[: kept - tail]}{_DOTS}{text[len(text) - tail :]}"
