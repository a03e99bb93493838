"""Writes traces as JSON. docs/trace_format.md describes the format, and docs/trace.schema.json is its schema."""

import json
from functools import lru_cache
from operator import attrgetter
from typing import BinaryIO

from attrs import asdict, fields

from engine.trace.trace import VERSION, Event, Trace

_values_of = attrgetter(*(f.name for f in fields(Event)))
_text = lru_cache(1 << 14)(json.dumps)  # most names stand in several events
_EVENT = "{" + ", ".join(f'"{f.name}": %s' for f in fields(Event)) + "}"


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes {"version": 4, "facts": {...}, "events": [...]}, an event a line; names as in `RunInfo` and `Event`."""
    out.write(f'{{"version": {VERSION}, "facts": {json.dumps(asdict(trace.facts))}, "events": [\n'.encode())
    between = ""
    for event in trace:
        out.write(f"{between}{_line(event)}".encode())
        between = ",\n"
    out.write(b"\n]}\n")


def _line(event: Event) -> str:
    """Returns the text that json.dumps makes of the same dictionary, without building one (tools/bench_trace.py)."""
    return _EVENT % tuple(_text(v) if type(v) is str else repr(v) for v in _values_of(event))
