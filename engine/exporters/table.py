"""Trace events as a table for people."""

from collections.abc import Sequence

from attrs import fields

from engine.tables import in_columns
from engine.trace import NOT_RUN, Event

COLUMNS = tuple(f.name for f in fields(Event))


def to_table(events: Sequence[Event]) -> str:
    """One line an event under a line of names; numbers to the right, texts to the left; times if there are any."""
    timed = any(e.seconds != NOT_RUN for e in events)
    shown = [f for f in fields(Event) if timed or f.name not in ("seconds", "thread")]
    rows = [tuple(f.name for f in shown), *(tuple(_text(getattr(e, f.name)) for f in shown) for e in events)]
    right = {i for i, f in enumerate(shown) if f.type is not str}
    return "".join(f"{line}\n" for line in in_columns(rows, right))


def _text(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
