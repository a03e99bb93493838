"""Trace events in the Chrome trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A tick is shown as a millisecond, where no run was timed. Operators are slices, one row a thread; chunks are
asynchronous slices (lifetimes overlap, and slices of one thread must nest), live bytes are a counter. Where a run had
stages, an instant marks the begin of each, and the bytes of the arena are a counter too.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO

from engine.trace import ARRIVALS, NOT_RUN, STAGE, Event, Trace

_TICK_US = 1000
_SECOND_US = 1e6
_CHANGES = (*ARRIVALS, "free")
_PROCESS = {"pid": 1, "tid": 1}


def write(trace: Trace, out: BinaryIO) -> None:
    """{"traceEvents": [...]}; times in microseconds, sizes in bytes."""
    events = tuple(trace)
    shown = [*_names(events), *_operators(events), *_chunks(events), *_live_bytes(events), *_stages(events)]
    out.write((json.dumps({"traceEvents": shown, "displayTimeUnit": "ms"}) + "\n").encode())


def _time(event: Event) -> float:
    """In microseconds."""
    return event.tick * _TICK_US if event.seconds == NOT_RUN else event.seconds * _SECOND_US


def _row(thread: int) -> dict[str, int]:
    return _PROCESS | {"tid": max(thread, 0) + 1}


def _names(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", **_PROCESS, "args": {"name": "arenaplan"}}
    for thread in sorted({e.thread for e in events} or {NOT_RUN}):
        name = "operators" if thread == NOT_RUN else f"thread {thread}"
        yield {"ph": "M", "name": "thread_name", **_row(thread), "args": {"name": name}}


def _operators(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    if any(e.seconds != NOT_RUN for e in events):
        yield from _timed_operators(events)
        return
    for tick, group in groupby((e for e in events if e.kind in (*_CHANGES, "begin")), key=lambda e: e.tick):
        name = next(group).operator
        yield {"ph": "X", "cat": "operator", "name": name, **_PROCESS, "ts": tick * _TICK_US, "dur": _TICK_US}


def _timed_operators(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    begun: dict[int, Event] = {}
    for event in events:
        if event.kind == "begin":
            begun[event.tick] = event
        elif event.kind == "end":
            times = {"ts": _time(begun[event.tick]), "dur": _time(event) - _time(begun[event.tick])}
            yield {"ph": "X", "cat": "operator", "name": event.operator, **_row(event.thread), **times}


def _chunks(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    open_chunks: dict[int, Event] = {}
    last = max((_time(e) for e in events), default=0)
    for event in (e for e in events if e.kind in _CHANGES):
        if event.kind == "free":
            yield _span("e", open_chunks.pop(event.chunk), _time(event))
            continue
        if event.kind == "overwrite":
            yield _span("e", open_chunks.pop(event.overwrites), _time(event))
        open_chunks[event.chunk] = event
        yield _span("b", event, _time(event))
    for event in open_chunks.values():
        yield _span("e", event, last)


def _span(phase: str, event: Event, time: float) -> dict[str, Any]:
    args = {"offset": event.offset, "bytes": event.bytes, "kind": event.kind, "operator": event.operator}
    where = {"cat": "chunk", "id": event.chunk, "name": event.tensor, "ts": time}
    return {"ph": phase, **where, **_PROCESS, "args": args}


def _live_bytes(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for event in (e for e in events if e.kind in _CHANGES):
        yield {"ph": "C", "name": "live bytes", "ts": _time(event), **_PROCESS, "args": {"live": event.live_bytes}}


def _stages(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for event in (e for e in events if e.kind == STAGE):
        at = {"ts": _time(event), **_PROCESS}
        yield {
            "ph": "i",
            "s": "p",
            "name": event.operator,
            **at,
            "args": {"arena": event.bytes, "decided": event.tensor},
        }
        yield {"ph": "C", "name": "arena bytes", **at, "args": {"arena": event.bytes}}
