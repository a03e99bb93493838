"""Writes trace events as CSV with a header; docs/trace_format.md describes the columns."""

from functools import lru_cache
from operator import attrgetter
from typing import BinaryIO

from attrs import fields

from engine.trace.trace import MEMORY, Event, Trace

COLUMNS = tuple(f.name for f in fields(Event))
_values_of = attrgetter(*COLUMNS)


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes RFC 4180 in UTF-8, with plain newlines; columns as in `Event`.

    Lone surrogates, which UTF-8 cannot encode, are escaped. The facts of the whole run are left out, but for the names
    of several memories: the last column is that of the event's offset.
    """
    facts = trace.facts
    if not facts.memories:
        out.write(_line(COLUMNS))
        for event in trace:
            out.write(_line(_values_of(event)))
        return
    out.write(_line((*COLUMNS, MEMORY)))
    for event in trace:
        out.write(_line((*_values_of(event), facts.memory_name(event.offset))))


def _line(values: tuple[object, ...]) -> bytes:
    line = ",".join([_cell(v) if type(v) is str else repr(v) for v in values])
    return f"{line}\n".encode(errors="backslashreplace")


@lru_cache(1 << 14)  # most names stand in several events
def _cell(text: str) -> str:
    if any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
