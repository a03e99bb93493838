"""Reads traces from CSV as `engine.exporters.csv` writes it, with columns in any order."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TextIO

from engine.readers.ledger import Ledger
from engine.readers.run_info import info_of
from engine.readers.values import TYPES, Location, check_names, event_of, shown
from engine.trace.trace import MEMORY, Event, Trace

_MOST_CHARACTERS = 1 << 24
"""Length of a line beyond which the file is refused."""
_MOST_DIGITS = 20
_NUMBERS = [(i, kind) for i, kind in enumerate(TYPES.values()) if kind is not str]


def read(path: Path) -> Trace:
    """Returns the trace of a file. It reads all events to determine the facts of the run, and again in each iteration.

    Raises TraceFormatError.
    """
    return Trace(info_of(_events(path), path.stem), lambda: _events(path))


def header(text: str) -> list[str]:
    """Returns the columns that the first line of a text names, quoted or not; empty where it is not CSV."""
    try:
        return next(csv.reader(text.splitlines()[:1], strict=True), [])
    except csv.Error:
        return []


def _events(path: Path) -> Iterator[Event]:
    location = Location(path)
    ledger = Ledger(location)
    with path.open(encoding="utf-8-sig", newline="\n") as file, _located(location):
        rows = csv.reader(_lines(file, location), strict=True)
        header = next(rows, [])
        check_names(header, tuple(TYPES), location, "column", but_for=(MEMORY,))
        pick: Callable[[list[str]], tuple[str, ...]] = itemgetter(*(header.index(name) for name in TYPES))
        before = rows.line_num
        for row in rows:
            location.line, before = before + 1, rows.line_num
            if row:
                event = _event(row, len(header), pick, location)
                ledger.enter(event)
                yield event
        ledger.close()


def _event(row: list[str], width: int, pick: Callable[[list[str]], tuple[str, ...]], location: Location) -> Event:
    if len(row) != width:
        raise location.wrong(f"{len(row)} columns where there should be {width}")
    picked = pick(row)
    values: list[object] = list(picked)
    for at, kind in _NUMBERS:
        values[at] = _number(picked[at], kind, at, location)
    return event_of(values, location)


def _number(text: str, kind: type, at: int, location: Location) -> int | float:
    """Returns a number; of what Python accepts, Unicode digits, blanks and underscores are refused."""
    digits = text.removeprefix("-")
    if kind is int and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
        return int(text)
    if kind is float and text.isascii() and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    raise location.wrong(f"{shown(text)} is not a {'whole number' if kind is int else 'number'}", tuple(TYPES)[at])


def _lines(file: TextIO, location: Location) -> Iterator[str]:
    while line := file.readline(_MOST_CHARACTERS):
        if len(line) == _MOST_CHARACTERS:
            raise location.wrong("a line is too long", "")
        yield line


@contextmanager
def _located(location: Location) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise location.wrong(f"from here on the file is not CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise location.wrong("a byte that is not UTF-8 follows this line") from error
