"""Trace events as a table for people."""

from collections.abc import Sequence

from attrs import astuple, fields

from engine.trace import Event

COLUMNS = tuple(f.name for f in fields(Event))


def to_table(events: Sequence[Event]) -> str:
    """One line an event under a line of names; numbers to the right, texts to the left."""
    rows = [COLUMNS, *(tuple(map(str, astuple(e))) for e in events)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    right = {f.name for f in fields(Event) if f.type is int}
    lines = (
        "  ".join(c.rjust(w) if n in right else c.ljust(w) for n, c, w in zip(COLUMNS, row, widths, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)
