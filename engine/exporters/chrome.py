"""Trace events in the Chrome trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A tick is shown as a millisecond, where a run has no times. Operators are slices, one row a thread; chunks are
asynchronous slices (lifetimes overlap, and slices of one thread must nest). Counters show the live bytes, the
footprint, and its unused part: fragmentation and free bytes. Instants mark the peak, what is evicted, and the begin
of each stage. Cascades and their stripes are slices around their operators. Each of several memories is a process of
its own, with its tensors, its weights, and a counter; a copy from one to another is a slice in both, with an arrow
between them. Those of a copy engine have rows of their own, as others may run beside them. Objects are written as
events come; memory holds live chunks and running operators only.

The format: "Trace Event Format", 2016, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from attrs import define, field, frozen

from engine.exporters.events import layer_note, nanoseconds, without_overlaps
from engine.exporters.groups import Around, around, in_its_memory
from engine.text.names import to_unicode
from engine.trace.details import COPY_ENGINE
from engine.trace.trace import EVICT, NOWHERE, OVERWRITE, PEAK, STAGE, VIEW, Event, RunInfo, Trace

_RUN = 1
"""The process of the run; those of its memories, if there are several, follow."""
_PROCESS = {"pid": _RUN}
_MAIN = 1
"""The row of everything that has no thread of its own."""
_COPIES = 2
"""The row of the copies in the process of a memory."""
_ENGINE = 1_000_000
"""The row of the copy engine, in the process of the run and in those of memories."""
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
    page = _Page(trace.facts, around(trace))
    model = to_unicode(trace.facts.model)
    yield _named("process_name", _MAIN, f"arenaplan {model}".rstrip())
    for memory, part in enumerate(trace.facts.memories):
        yield _named("process_name", _MAIN, part.title, _process(memory))
    for event in without_overlaps(trace):
        yield from page.show(event)
    yield from page.closed()
    yield from _weights(trace, page.last)


def _process(memory: int) -> int:
    """Returns the process of a memory; that of the run for what lies in the only one."""
    return _RUN + 1 + memory if memory != NOWHERE else _RUN


def _weights(trace: Trace, end: float) -> Iterator[Shown]:
    """Yields the weights that lie in one of several memories, from the begin of the run to its end."""
    for number, weight in enumerate(trace.details().weights if trace.facts.memories else ()):
        name, args = to_unicode(weight.name), {"offset": weight.offset, "bytes": weight.bytes}
        where = {"cat": "weight", "id": number, "name": name, "pid": _process(weight.memory), "tid": _MAIN}
        about = {"shape": weight.shape, "dtype": weight.dtype, "why": to_unicode(weight.reason)}
        yield {"ph": "b", **where, "ts": 0, "args": args | about}
        yield {"ph": "e", **where, "ts": end}


def _named(what: str, row: int, name: str, process: int = _RUN) -> Shown:
    return {"ph": "M", "name": what, "pid": process, "tid": row, "args": {"name": name}}


@frozen
class _Alive:
    """A chunk that is alive: its name, the process of its memory, and its bytes."""

    name: str
    process: int
    bytes: int


@define(eq=False)
class _Page:
    """Open slices, the last value of each counter, and the bytes that are alive in each process of a memory.

    `rows` has the process and the row of those that have a name.
    """

    facts: RunInfo
    around: Around
    rows: set[tuple[int, int]] = field(factory=set)
    running: dict[int, float] = field(factory=dict)
    alive: dict[int, _Alive] = field(factory=dict)
    held: Counter[int] = field(factory=Counter)
    counters: dict[tuple[int, str], int] = field(factory=dict)
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
                yield from self._opened(event, time)
            case "end":
                begin = self.running.pop(event.tick)
                yield from self._operator(event, begin, time)
                yield from self._copied(event, begin, time)
                yield from ({"ph": "E", **_thread(event), "ts": time} for _ in range(self.around.closing[event.tick]))
            case "stage" | "peak" | "view" | "evict":
                yield _instant(in_its_memory(event, self.facts), time)
        yield from self._counted(event, time)

    def closed(self) -> Iterator[Shown]:
        """Yields the ends of chunks that are alive after the last event."""
        for chunk in tuple(self.alive):
            yield from self._departure(chunk, self.last)

    def _arrival(self, event: Event, time: float) -> Iterator[Shown]:
        if event.kind == OVERWRITE:
            yield from self._departure(event.overwrites, time)
        process = _process(self.facts.memory_at(event.offset))
        self.alive[event.chunk] = chunk = _Alive(to_unicode(event.tensor), process, event.bytes)
        self.held[process] += event.bytes
        yield _tensor("b", event.chunk, chunk, time) | {"args": _details(in_its_memory(event, self.facts))}

    def _departure(self, chunk: int, time: float) -> Iterator[Shown]:
        if chunk in self.alive:
            gone = self.alive.pop(chunk)
            self.held[gone.process] -= gone.bytes
            yield _tensor("e", chunk, gone, time)

    def _opened(self, event: Event, time: float) -> Iterator[Shown]:
        """Yields the begins of the cascades and stripes that an operator is the first of."""
        for group in self.around.opening.get(event.tick, ()):
            notes = {key: to_unicode(note) if isinstance(note, str) else note for key, note in group.notes.items()}
            yield {
                "ph": "B",
                "cat": "cascade",
                "name": to_unicode(group.name),
                **_thread(event),
                "ts": time,
                "args": notes,
            }

    def _copied(self, event: Event, begin: float, time: float) -> Iterator[Shown]:
        """Yields a copy between memories, which has just ended: a slice in both, and an arrow from one to the other."""
        if event.tick not in self.around.moves:
            return
        move, weights = self.around.moves[event.tick], self.around.weights
        row, lane = (_ENGINE, COPY_ENGINE) if move.is_beside else (_COPIES, "copies")
        source = _process(weights[move.source].memory) if move.is_weight else self.alive[move.source].process
        for process, phase in ((source, "s"), (self.alive[move.chunk].process, "f")):
            where = {"pid": process, "tid": row, "cat": "copy", "name": to_unicode(event.operator), "ts": begin}
            yield from self._row(row, lane, process)
            yield {"ph": "X", **where, "dur": time - begin, "args": {"tick": event.tick}}
            yield {"ph": phase, **where, "id": event.tick, "bp": "e"}

    def _operator(self, event: Event, begin: float, time: float) -> Iterator[Shown]:
        row, lane = max(event.thread, 0) + 1, "operators" if event.thread < 0 else f"thread {event.thread}"
        if self.around.is_beside(event.tick):
            row, lane = _ENGINE, COPY_ENGINE
        yield from self._row(row, lane, _RUN)
        times = {"ts": begin, "dur": time - begin}
        args = {"schema": to_unicode(event.schema), "tick": event.tick, "stage": event.stage, **_layer(event)}
        name = to_unicode(event.operator)
        yield {"ph": "X", "cat": "operator", "name": name, **_PROCESS, "tid": row, **times, "args": args}

    def _row(self, row: int, name: str, process: int) -> Iterator[Shown]:
        """Yields the name of a row of a process when it first has something."""
        if (process, row) not in self.rows:
            self.rows.add((process, row))
            yield _named("thread_name", row, name, process)

    def _counted(self, event: Event, time: float) -> Iterator[Shown]:
        live, footprint = event.live_bytes, event.footprint_bytes
        values = {(_RUN, "live"): live, (_RUN, "footprint"): footprint, (_RUN, "unused"): footprint - live}
        for memory, part in enumerate(self.facts.memories):
            values[_process(memory), f"live in {part.name}"] = self.held[_process(memory)]
        for (process, name), value in values.items():
            if self.counters.get((process, name)) != value:
                self.counters[process, name] = value
                yield {"ph": "C", "name": name, "pid": process, "tid": _MAIN, "ts": time, "args": {"bytes": value}}


def _tensor(phase: str, number: int, chunk: _Alive, time: float) -> Shown:
    where = {"pid": chunk.process, "tid": _MAIN, "ts": time}
    return {"ph": phase, "cat": "tensor", "id": number, "name": chunk.name, **where}


def _thread(event: Event) -> Shown:
    return {**_PROCESS, "tid": max(event.thread, 0) + 1}


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
