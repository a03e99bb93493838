"""Terminals and files as targets of text: their width, their colours, and the characters that they can show."""

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
        """True if lines must fit into its width."""
        return self.width != UNBOUNDED

    @property
    def has_blocks(self) -> bool:
        """True if its encoding has the characters that pictures are drawn with."""
        try:
            _BLOCKS.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    @property
    def dots(self) -> str:
        """The sign for text that is left out."""
        return "…" if self.has_blocks else "..."

    def styled(self, text: str, style: str) -> str:
        """Returns a text in a style, given by its ANSI numbers; unchanged without colour."""
        return f"\x1b[{style}m{text}{_RESET}" if self.has_colour and text and style else text

    def put(self, line: str, out: BinaryIO) -> None:
        """Writes a line; characters that the encoding lacks are written as escapes."""
        out.write(f"{line}\n".encode(self.encoding, "backslashreplace"))


def screen_of(stream: TextIO, environment: Mapping[str, str]) -> Screen:
    """Returns the screen of a stream. Terminals have colour, unless NO_COLOR is set (https://no-color.org)."""
    encoding = stream.encoding or "utf-8"
    if not stream.isatty():
        return Screen(encoding=encoding)
    is_dumb = environment.get("TERM") == "dumb"
    has_colour = not (is_dumb or environment.get("NO_COLOR") or sys.platform == "win32")
    return Screen(get_terminal_size().columns, has_colour, encoding)


FILE = Screen()
"""A file in UTF-8."""
BOLD, DIM = "1", "2"


def visible_width(text: str) -> int:
    """Returns the columns of a text on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, width: int, dots: str) -> str:
    """Returns a text in at most `width` columns: of a longer one both ends, because the end is often a number."""
    if visible_width(text) <= width:
        return text
    space = max(width - len(dots), 0)
    tail = _kept(text[::-1], space // 2)[::-1]
    return f"{_kept(text, space - visible_width(tail))}{dots[:width]}{tail}"


def cut(text: str, width: int, dots: str) -> str:
    """Returns a text in at most `width` columns: of a longer one the beginning."""
    return text if visible_width(text) <= width else f"{_kept(text, width - len(dots))}{dots}"


def _kept(text: str, width: int) -> str:
    """Returns the beginning of a text that fits into `width` columns."""
    kept = ""
    for character in text:
        if visible_width(kept + character) > width:
            break
        kept += character
    return kept


def padded(text: str, width: int, right: bool = False) -> str:
    """Returns a text with blanks behind it, or before it if it is right-aligned."""
    blanks = " " * (width - visible_width(text))
    return blanks + text if right else text + blanks
