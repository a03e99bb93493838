"""Reads JSON value by value, so that a file of any length takes little memory."""

from collections.abc import Iterable
from json import JSONDecodeError, JSONDecoder
from typing import Any, TextIO

from attrs import define, field

from engine.readers.values import Location, shown

_BLOCK = 1 << 18
MOST_CHARACTERS = 1 << 24
"""Length of a value beyond which the file is refused."""
_LONGEST_WORD = 16
"""Characters of the longest word or escape; an error in one is reported at its first character."""
_BLANKS = " \t\r\n"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number in JSON")


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{shown(key)} is there twice")
        values[key] = value
    return values


_DECODER = JSONDecoder(parse_constant=_refuse, object_pairs_hook=_distinct)


@define(eq=False)
class Scanner:
    """A position in a text that only advances; `location` has its line. Errors are TraceFormatError."""

    file: TextIO
    location: Location
    _text: str = ""
    _at: int = field(default=0, init=False)
    _is_all: bool = field(default=False, init=False)

    def next(self) -> str:
        """Returns the next character that is not blank, without passing it; empty at the end."""
        while True:
            start = self._at
            while self._at < len(self._text) and self._text[self._at] in _BLANKS:
                self._at += 1
            self.location.line += self._text.count("\n", start, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill(_BLOCK):
                return ""

    def take(self, wanted: str) -> None:
        """Passes this character, which must be the next one."""
        if self.next() != wanted:
            actual = shown(self._text[self._at]) if self._at < len(self._text) else "the end of the file"
            raise self.location.wrong(f"{wanted!r} is expected, not {actual}")
        self._at += 1

    def value(self) -> Any:
        """Reads and passes a whole value: a text, a number, an object ..."""
        self.next()
        block = _BLOCK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if block > MOST_CHARACTERS:
                    raise self.location.wrong(f"a value of more than {MOST_CHARACTERS} characters") from error
                if not self._may_go_on(error) or not self._fill(block):
                    raise self._wrong(error) from error
            else:
                if end < len(self._text) or not self._fill(block):  # a number may go on
                    self.location.line += self._text.count("\n", self._at, end)
                    self._at = end
                    return value
            block *= 2

    def _fill(self, count: int) -> bool:
        """Reads more text; returns False at the end of the file."""
        if self._is_all:
            return False
        try:
            more = self.file.read(count)
        except UnicodeDecodeError as error:
            raise self.location.wrong("a byte that is not UTF-8 follows this line") from error
        self._text, self._at = self._text[self._at :] + more, 0
        self._is_all = not more
        return bool(more)

    def _may_go_on(self, error: Exception) -> bool:
        """Returns whether an error may be due to the end of the text: it is at its end, or in a string."""
        if not isinstance(error, JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated") or error.pos + _LONGEST_WORD > len(self._text)

    def _wrong(self, error: Exception) -> Exception:
        if isinstance(error, JSONDecodeError):
            line = self.location.line + self._text.count("\n", self._at, error.pos)
            is_cut = self._is_all and error.pos >= len(self._text.rstrip())
            what = "the file ends in the middle of a value" if is_cut else f"{error.msg} (not JSON)"
            return Location(self.location.path, line).wrong(what)
        return self.location.wrong("nested too deeply" if isinstance(error, RecursionError) else str(error))
