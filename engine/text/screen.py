"""What people look at text on: how wide it is, and what it can show."""

import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from typing import BinaryIO, TextIO
from unicodedata import combining, east_asian_width

from attrs import frozen

_BLOCKS = "▁▂▃▄▅▆▇█▏▎▍▌▋▊▉│┤└─…"
UNBOUNDED = 0
"""Width of a file or a pipe: a line may have any length."""
_RESET = "\x1b[0m"


@frozen
class Screen:
    """A terminal, or a file. `width` is in columns."""

    width: int = UNBOUNDED
    has_colour: bool = False
    encoding: str = "utf-8"

    @property
    def is_terminal(self) -> bool:
        """Whether lines must not be longer than it is wide."""
        return self.width != UNBOUNDED

    @property
    def has_blocks(self) -> bool:
        """Whether it knows the characters that pictures are drawn with."""
        try:
            _BLOCKS.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def styled(self, text: str, style: str) -> str:
        """In a style, by its ANSI numbers, where there is colour."""
        return f"\x1b[{style}m{text}{_RESET}" if self.has_colour and text and style else text

    def put(self, line: str, out: BinaryIO) -> None:
        """Writes a line; letters that the screen has not are spelled out."""
        out.write(f"{line}\n".encode(self.encoding, "backslashreplace"))


def screen_of(stream: TextIO, environment: Mapping[str, str]) -> Screen:
    """What a stream is. Colour is for terminals, but not where NO_COLOR is set (https://no-color.org)."""
    encoding = stream.encoding or "utf-8"
    if not stream.isatty():
        return Screen(encoding=encoding)
    is_dumb = environment.get("TERM") == "dumb"
    has_colour = not (is_dumb or environment.get("NO_COLOR") or sys.platform == "win32")
    return Screen(get_terminal_size().columns, has_colour, encoding)


FILE = Screen()
"""No terminal, and UTF-8."""
BOLD, DIM = "1", "2"


def printed(name: str) -> str:
    """A name on one line, whole: what would move the cursor or cannot be seen is written as Python escapes it."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def visible_width(text: str) -> int:
    """Columns that a text takes on a terminal: two for wide characters, none for what stands over another."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, width: int, dots: str) -> str:
    """Both ends of a text that takes more columns: names often differ in a number at the end."""
    if visible_width(text) <= width:
        return text
    room = max(width - len(dots), 0)
    tail = _kept(text[::-1], room // 2)[::-1]
    return f"{_kept(text, room - visible_width(tail))}{dots[:width]}{tail}"


def _kept(text: str, width: int) -> str:
    """The beginning of a text, in so many columns."""
    kept = ""
    for character in text:
        if visible_width(kept + character) > width:
            break
        kept += character
    return kept


def padded(text: str, width: int, right: bool = False) -> str:
    """With blanks behind it, or before it where it is to stand to the right."""
    blanks = " " * (width - visible_width(text))
    return blanks + text if right else text + blanks
