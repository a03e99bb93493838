"""Trace events in the Chrome trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A tick is shown as a millisecond. Operators are slices, chunks are asynchronous slices (lifetimes overlap, and slices of
one thread must nest), live bytes are a counter.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from engine.trace import NOTHING, Event

_TICK_US = 1000
_PROCESS = {"pid": 1, "tid": 1}


def to_chrome(events: Sequence[Event]) -> str:
    """{"traceEvents": [...]}; times in microseconds, sizes in bytes."""
    shown = [*_names(), *_operators(events), *_chunks(events), *_live_bytes(events)]
    return json.dumps({"traceEvents": shown, "displayTimeUnit": "ms"}) + "\n"


def _names() -> Iterator[dict[str, Any]]:
    for kind, name in (("process_name", "arenaplan"), ("thread_name", "operators")):
        yield {"ph": "M", "name": kind, **_PROCESS, "args": {"name": name}}


def _operators(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for tick, group in groupby(events, key=lambda e: e.tick):
        name = next(group).operator
        yield {"ph": "X", "cat": "operator", "name": name, **_PROCESS, "ts": tick * _TICK_US, "dur": _TICK_US}


def _chunks(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    open_chunks: dict[int, Event] = {}
    for event in events:
        if event.kind == "free":
            yield _span("e", open_chunks.pop(event.chunk), event.tick)
            continue
        if event.overwrites != NOTHING:
            yield _span("e", open_chunks.pop(event.overwrites), event.tick)
        open_chunks[event.chunk] = event
        yield _span("b", event, event.tick)
    last = max((e.tick for e in events), default=0)
    for event in open_chunks.values():
        yield _span("e", event, last)


def _span(phase: str, event: Event, tick: int) -> dict[str, Any]:
    args = {"offset": event.offset, "bytes": event.bytes, "kind": event.kind, "operator": event.operator}
    where = {"cat": "chunk", "id": event.chunk, "name": event.tensor, "ts": tick * _TICK_US}
    return {"ph": phase, **where, **_PROCESS, "args": args}


def _live_bytes(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for event in events:
        at = {"ts": event.tick * _TICK_US, **_PROCESS}
        yield {"ph": "C", "name": "live bytes", **at, "args": {"live": event.live_bytes}}
