"""Fits texts into the space that a picture has for them; lengths in pixels."""

from engine.text.names import with_ends

_WIDTHS = {"ijlI.,:;'|! ": 0.28, "frt()[]/\\-·": 0.34, "mwMW@%&": 0.86}
_SHARES = {character: share for characters, share in _WIDTHS.items() for character in characters}
"""Width of a character at a font size of 1, rounded up from Helvetica's; `_share` estimates all others."""
_DOTS = "…"


def text_width(text: str, size: float) -> float:
    """Returns an upper estimate of the width of a text in the sans-serif fonts of browsers."""
    return size * sum(map(_share, text))


def _share(character: str) -> float:
    if character in _SHARES:
        return _SHARES[character]
    if ord(character) > 0x2000 and character != _DOTS:
        return 1.05
    return 0.7 if character.isupper() else 0.57


def fitted(text: str, size: float, width: float) -> str:
    """Returns the text, or both its ends where it is wider than `width`: names often differ in a number at the end.

    Returns an empty text if fewer than four characters would stay.
    """
    if text_width(text, size) <= width:
        return text
    longest = min(len(text) - 1, int(width))
    count = next((n for n in range(longest, 3, -1) if text_width(with_ends(text, n), size) <= width), 0)
    return with_ends(text, count) if count else ""


def wrapped(text: str, size: float, width: float) -> list[str]:
    """Returns the words of a text in lines that are no wider than `width`; a longer word has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
