"""Writes a trace as a memory snapshot of PyTorch, for pytorch.org/memory_viz and `python -m torch.cuda._memory_viz`.

A chunk is an allocation, and its stack trace names tensor, operator and model. An overwrite frees one chunk and
allocates another in its bytes. Chunks without bytes are left out. The arena is a segment, and
where it lies in several memories, each of them is one. Each growth of a heap is a
segment too; where chunks reach from one growth into the next, the heap is one segment that grows. Reference counting
without a heap model has no addresses: chunks are placed by first fit. No heap model with addresses shrinks.

The format: torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js of PyTorch 2.13. The latter reads pickles itself,
of protocols 2 to 4, and accepts only plain lists, dicts, texts and numbers. Events are pickled one by one; a reader
holds the whole file.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, BinaryIO

from attrs import define, field, frozen

from engine.exporters.events import LiveChunks, nanoseconds
from engine.exporters.laid_out import LaidOut, laid_out
from engine.exporters.pickle_stream import PickleStream
from engine.text.names import to_unicode
from engine.trace.trace import ARRIVALS, FREE, GROW, NOWHERE, OVERWRITE, Event, RunInfo, Trace

BASE = 0x7F0000000000
"""Address of the first byte."""
_LEFT_OUT = (
    "unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start", "__libc_start_main", "PyEval_",
    "PyObject_", "PyFunction_",
)  # fmt: skip
"""Both readers hide frames whose function names contain one of these."""
_JOINER = "\N{WORD JOINER}"
Shown = dict[str, Any]


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes one pickled dict; times in microseconds, sizes in bytes.

    It reads the trace twice and keeps live chunks; without addresses three times, and it keeps all addresses.
    """
    memory = _Memory(trace.facts, _segments_of(trace))
    dump = PickleStream(out)
    dump.put_lists("device_traces", [memory.history(trace)])  # one list a device
    dump.put("segments", memory.segments())
    dump.put("allocator_settings", {})
    dump.put("external_annotations", [])
    dump.close()


_PLACED = LaidOut([], 0)


@frozen(eq=False)
class _Segments:
    """The segments and addresses that must be known before events are written.

    `is_one`: all memory is one segment, because chunks reach from one growth into the next. `laid_out` has
    addresses for chunks that have none.
    """

    is_one: bool = False
    laid_out: LaidOut = _PLACED


def _segments_of(trace: Trace) -> _Segments:
    top, starts, is_one = 0, list[int](), False
    for event in trace:
        if event.kind == GROW:
            starts.append(top)
            top += event.bytes
        elif event.kind in ARRIVALS and event.bytes:
            if event.offset == NOWHERE:
                return _Segments(is_one=True, laid_out=laid_out(trace))
            after = bisect_right(starts, event.offset)
            is_one |= after < len(starts) and starts[after] < event.offset + event.bytes
    return _Segments(is_one)


@define(eq=False)
class _Memory:
    """The state of the memory after the events so far, and how many chunks there were; `parts` are (address, bytes)."""

    facts: RunInfo
    layout: _Segments
    arrived: int = 0
    address: dict[int, int] = field(factory=dict)
    alive: LiveChunks = field(factory=LiveChunks)
    parts: list[tuple[int, int]] = field(factory=list)
    top: int = 0

    def history(self, trace: Trace) -> Iterator[Shown]:
        """Yields the events of MemoryViz."""
        for event in trace:
            if self.layout.laid_out.bytes and not self.top:
                yield self._grow(event, self.layout.laid_out.bytes, self._memory_name())
            if event.kind == GROW and not self.layout.laid_out.bytes:
                yield from self._grown(event)
            if event.kind in {FREE, OVERWRITE}:
                yield from self._leave(event.overwrites if event.kind == OVERWRITE else event.chunk, event)
            if event.kind in ARRIVALS and event.bytes:
                self.address[event.chunk] = at = self._place(event)
                yield _shown("alloc", at, event.bytes, event, self._frames(event))
            self.alive.enter(event)

    def _place(self, event: Event) -> int:
        if not self.layout.laid_out.bytes:
            return event.offset
        self.arrived += 1
        return int(self.layout.laid_out.offset[self.arrived - 1])

    def _leave(self, chunk: int, event: Event) -> Iterator[Shown]:
        if chunk not in self.address:
            return
        at, gone = self.address.pop(chunk), self.alive.born[chunk]
        for action in ("free_requested", "free_completed"):
            yield _shown(action, at, gone.bytes, event, self._frames(gone))

    def _grown(self, event: Event) -> Iterator[Shown]:
        if not self.facts.memories:
            yield self._grow(event, event.bytes, self._memory_name())
        for part in self.facts.memories:
            if part.arena_bytes:
                self.top = part.start
                yield self._grow(event, part.arena_bytes, f"memory {_not_hidden(part.title)}")

    def _grow(self, event: Event, size: int, name: str) -> Shown:
        at, is_more = self.top, bool(self.parts) and self.layout.is_one
        self.top += size
        if is_more:
            self.parts[0] = 0, self.top
        else:
            self.parts.append((at, size))
        frame = {"filename": "memory", "line": event.tick, "name": name}
        return _shown("segment_map" if is_more else "segment_alloc", at, size, event, [frame])

    def _memory_name(self) -> str:
        if self.facts.mode == "static":
            return "arena"
        return "reference counting, laid out by first fit" if self.layout.laid_out.bytes else f"heap {self.facts.heap}"

    def _frames(self, event: Event) -> list[Shown]:
        """Returns the frames of a stack trace, the innermost first."""
        kind = f" ({event.schema})" if event.schema else ""
        names = {
            "tensor": f"{event.tensor} [{event.shape}] {event.dtype} {event.role}",
            "operator": f"{event.operator}{kind}",
            **({"memory": self.facts.memory_name(event.offset)} if self.facts.memories else {}),
            "model": self.facts.model,
        }
        return [{"filename": what, "line": event.tick, "name": _not_hidden(name)} for what, name in names.items()]

    def segments(self) -> list[Shown]:
        """Returns the segments after the last event, with the chunks that are alive then."""
        spans = sorted((at, self.alive.born[chunk]) for chunk, at in self.address.items())
        return [
            self._segment(start, size, [s for s in spans if start <= s[0] < start + size]) for start, size in self.parts
        ]

    def _segment(self, start: int, size: int, spans: list[tuple[int, Event]]) -> Shown:
        used = sum(event.bytes for _, event in spans)
        blocks, top = list[Shown](), start
        for at, event in spans:
            if at > top:
                blocks.append(_block("inactive", top, at - top, []))
            blocks.append(_block("active_allocated", at, event.bytes, self._frames(event)))
            top = at + event.bytes
        if top < start + size:
            blocks.append(_block("inactive", top, start + size - top, []))
        sizes = {"total_size": size, "allocated_size": used, "active_size": used, "requested_size": used}
        kind = {"segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": self.layout.is_one}
        where = {"device": 0, "address": BASE + start, "stream": 0}
        return {**where, **sizes, **kind, "frames": [], "blocks": blocks}


def _not_hidden(name: str) -> str:
    """Returns a name that both readers show: an invisible character breaks the words that they hide."""
    name = to_unicode(name)
    for part in _LEFT_OUT:
        name = name.replace(part, part[:-1] + _JOINER + part[-1])
    return name


def _shown(action: str, at: int, size: int, event: Event, frames: list[Shown]) -> Shown:
    time = nanoseconds(event) // 1000
    return {"action": action, "addr": BASE + at, "size": size, "stream": 0, "time_us": time, "frames": frames}


def _block(state: str, at: int, size: int, frames: list[Shown]) -> Shown:
    return {"address": BASE + at, "size": size, "requested_size": size, "state": state, "frames": frames}
