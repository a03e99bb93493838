"""Trace events as a table for people."""

from typing import BinaryIO

from attrs import fields

from engine.tables import in_columns
from engine.trace import Event, Trace

_SHOWN = ("tick", "operator", "kind", "tensor", "chunk", "offset", "bytes", "live_bytes", "overwrites")
_TIMES = ("seconds", "thread")


def write(trace: Trace, out: BinaryIO) -> None:
    """One line an event under a line of names; numbers to the right, texts to the left; times if there are any."""
    names = _SHOWN + (_TIMES if trace.facts.is_timed else ())
    rows = [names, *(tuple(_text(getattr(e, name)) for name in names) for e in trace)]
    types = {f.name: f.type for f in fields(Event)}
    right = {i for i, name in enumerate(names) if types[name] is not str}
    out.write("".join(f"{line}\n" for line in in_columns(rows, right)).encode())


def _text(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
