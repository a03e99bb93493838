"""Trace events as a table for people."""

from collections.abc import Sequence

from attrs import astuple, fields

from engine.tables import in_columns
from engine.trace import Event

COLUMNS = tuple(f.name for f in fields(Event))


def to_table(events: Sequence[Event]) -> str:
    """One line an event under a line of names; numbers to the right, texts to the left."""
    rows = [COLUMNS, *(tuple(map(str, astuple(e))) for e in events)]
    right = {COLUMNS.index(f.name) for f in fields(Event) if f.type is int}
    return "".join(f"{line}\n" for line in in_columns(rows, right))
