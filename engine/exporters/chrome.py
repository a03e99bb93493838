"""Trace events in the Chrome trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A tick is shown as a millisecond, where a run has no times. Operators are slices, one row a thread; chunks are
asynchronous slices (lifetimes overlap, and slices of one thread must nest). Counters show the live bytes, the
footprint, and its unused part: fragmentation and free bytes. Instants mark the peak, what is evicted, and the begin
of each stage. Objects are written as events come; memory holds live chunks and running operators only.

The format: "Trace Event Format", 2016, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from attrs import define, field

from engine.exporters.events import layer_note, nanoseconds, without_overlaps
from engine.text.names import to_unicode
from engine.trace.trace import EVICT, OVERWRITE, PEAK, STAGE, VIEW, Event, RunInfo, Trace

_PROCESS = {"pid": 1}
_MAIN = 1
"""The row of everything that has no thread of its own."""
Shown = dict[str, Any]


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes {"traceEvents": [...], ...}, an event a line; times in microseconds, sizes in bytes."""
    out.write(b'{"displayTimeUnit": "ms", "otherData": ' + _line(_about(trace.facts)) + b', "traceEvents": [\n')
    between = b""
    for shown in _shown(trace):
        out.write(between + _line(shown))
        between = b",\n"
    out.write(b"\n]}\n")


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _about(facts: RunInfo) -> Mapping[str, Any]:
    """Returns the facts of the run that Perfetto shows under "Overview", as texts."""
    sizes = ("arena_bytes", "lower_bound", "peak_bytes", "possible_peak_bytes", "footprint_bytes")
    return {
        "model": to_unicode(facts.model),
        **{name: getattr(facts, name) for name in ("mode", "heap", "strategy", "clock")},
        **{name: str(getattr(facts, name)) for name in sizes},
        "peak_operator": to_unicode(facts.peak_operator),
    }


def _shown(trace: Trace) -> Iterator[Shown]:
    page = _Page()
    model = to_unicode(trace.facts.model)
    yield _named("process_name", _MAIN, f"arenaplan {model}".rstrip())
    for event in without_overlaps(trace):
        yield from page.show(event)
    yield from page.closed()


def _named(what: str, row: int, name: str) -> Shown:
    return {"ph": "M", "name": what, **_PROCESS, "tid": row, "args": {"name": name}}


@define(eq=False)
class _Page:
    """Open slices, and the last value of each counter."""

    rows: set[int] = field(factory=set)
    running: dict[int, float] = field(factory=dict)
    alive: dict[int, str] = field(factory=dict)
    counters: dict[str, int] = field(factory=dict)
    last: float = 0.0

    def show(self, event: Event) -> Iterator[Shown]:
        """Yields the objects of one event."""
        time = self.last = nanoseconds(event) / 1000
        match event.kind:
            case "alloc" | "overwrite":
                yield from self._arrival(event, time)
            case "free":
                yield from self._departure(event.chunk, time)
            case "begin":
                self.running[event.tick] = time
            case "end":
                yield from self._operator(event, time)
            case "stage" | "peak" | "view" | "evict":
                yield _instant(event, time)
        yield from self._counted(event, time)

    def closed(self) -> Iterator[Shown]:
        """Yields the ends of chunks that are alive after the last event."""
        for chunk in tuple(self.alive):
            yield from self._departure(chunk, self.last)

    def _arrival(self, event: Event, time: float) -> Iterator[Shown]:
        if event.kind == OVERWRITE:
            yield from self._departure(event.overwrites, time)
        self.alive[event.chunk] = name = to_unicode(event.tensor)
        yield _tensor("b", event.chunk, name, time) | {"args": _details(event)}

    def _departure(self, chunk: int, time: float) -> Iterator[Shown]:
        if chunk in self.alive:
            yield _tensor("e", chunk, self.alive.pop(chunk), time)

    def _operator(self, event: Event, time: float) -> Iterator[Shown]:
        row, begin = max(event.thread, 0) + 1, self.running.pop(event.tick)
        if row not in self.rows:
            self.rows.add(row)
            yield _named("thread_name", row, "operators" if event.thread < 0 else f"thread {event.thread}")
        times = {"ts": begin, "dur": time - begin}
        args = {"schema": to_unicode(event.schema), "tick": event.tick, "stage": event.stage, **_layer(event)}
        name = to_unicode(event.operator)
        yield {"ph": "X", "cat": "operator", "name": name, **_PROCESS, "tid": row, **times, "args": args}

    def _counted(self, event: Event, time: float) -> Iterator[Shown]:
        live, footprint = event.live_bytes, event.footprint_bytes
        for name, value in {"live": live, "footprint": footprint, "unused": footprint - live}.items():
            if self.counters.get(name) != value:
                self.counters[name] = value
                yield {"ph": "C", "name": name, **_PROCESS, "tid": _MAIN, "ts": time, "args": {"bytes": value}}


def _tensor(phase: str, chunk: int, name: str, time: float) -> Shown:
    return {"ph": phase, "cat": "tensor", "id": chunk, "name": name, **_PROCESS, "tid": _MAIN, "ts": time}


def _instant(event: Event, time: float) -> Shown:
    """Returns an instant of the whole trace, or of a thread where it concerns one tensor."""
    name, args = {
        PEAK: ("peak", {"bytes": event.bytes, "operator": to_unicode(event.operator), "tick": event.tick}),
        STAGE: (to_unicode(event.operator), {"arena": event.bytes, "decided": to_unicode(event.tensor)}),
        VIEW: (f"view {to_unicode(event.tensor)}", {"chunk": event.chunk} | _details(event)),
        EVICT: (f"evict {to_unicode(event.tensor)}", {"chunk": event.chunk} | _details(event)),
    }[event.kind]
    scope = {PEAK: "g", STAGE: "p", VIEW: "t", EVICT: "t"}[event.kind]
    where = {**_PROCESS, "tid": max(event.thread, 0) + 1, "ts": time}
    return {"ph": "i", "s": scope, "cat": event.kind, "name": name, **where, "args": args}


def _details(event: Event) -> Shown:
    texts = {name: to_unicode(getattr(event, name)) for name in ("operator", "shape", "dtype", "role")}
    numbers = {name: getattr(event, name) for name in ("offset", "bytes", "padding", "tick", "stage")}
    more = {"overwrites": event.overwrites} if event.kind == OVERWRITE else {}
    return {**numbers, **texts, **_layer(event), **more}


def _layer(event: Event) -> Shown:
    return {name: to_unicode(value) for name, value in layer_note(event).items()}
