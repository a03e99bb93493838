"""Traces from CSV as `engine.exporters.csv` writes them, in any order of columns."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TextIO

from engine.readers.facts import info_of
from engine.readers.ledger import Ledger
from engine.readers.place import Location, shown
from engine.readers.values import TYPES, check_names, event_of
from engine.trace.trace import Event, Trace

_MOST_CHARACTERS = 1 << 24
"""Of a line."""
_MOST_DIGITS = 20
_NUMBERS = [(i, kind) for i, kind in enumerate(TYPES.values()) if kind is not str]


def read(path: Path) -> Trace:
    """Reads all events, as only they tell what holds of all; and again each time they are asked for.

    Raises TraceFormatError.
    """
    return Trace(info_of(_events(path), path.stem), lambda: _events(path))


def header(text: str) -> list[str]:
    """The columns that the first line of a text names, quoted or not; nothing where it is no CSV."""
    try:
        return next(csv.reader(text.splitlines()[:1], strict=True), [])
    except csv.Error:
        return []


def _events(path: Path) -> Iterator[Event]:
    place = Location(path)
    ledger = Ledger(place)
    with path.open(encoding="utf-8-sig", newline="\n") as file, _placed(place):
        rows = csv.reader(_lines(file, place), strict=True)
        header = next(rows, [])
        check_names(header, tuple(TYPES), place, "column")
        pick: Callable[[list[str]], tuple[str, ...]] = itemgetter(*(header.index(name) for name in TYPES))
        before = rows.line_num
        for row in rows:
            place.line, before = before + 1, rows.line_num
            if row:
                event = _event(row, len(header), pick, place)
                ledger.enter(event)
                yield event
        ledger.close()


def _event(row: list[str], width: int, pick: Callable[[list[str]], tuple[str, ...]], place: Location) -> Event:
    if len(row) != width:
        raise place.wrong(f"{len(row)} columns where there should be {width}")
    picked = pick(row)
    values: list[object] = list(picked)
    for at, kind in _NUMBERS:
        values[at] = _number(picked[at], kind, at, place)
    return event_of(values, place)


def _number(text: str, kind: type, at: int, place: Location) -> int | float:
    """Of what Python takes for numbers, without Unicode digits, blanks and underscores."""
    digits = text.removeprefix("-")
    if kind is int and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
        return int(text)
    if kind is float and text.isascii() and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    raise place.wrong(f"{shown(text)} is not a {'whole number' if kind is int else 'number'}", tuple(TYPES)[at])


def _lines(file: TextIO, place: Location) -> Iterator[str]:
    while line := file.readline(_MOST_CHARACTERS):
        if len(line) == _MOST_CHARACTERS:
            raise place.wrong("a line is too long", "")
        yield line


@contextmanager
def _placed(place: Location) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise place.wrong(f"behind here is no CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise place.wrong("behind here is a byte that is not UTF-8") from error
