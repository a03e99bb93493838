"""Writes a trace in Perfetto's own format, for ui.perfetto.dev and its trace processor: smaller than Chrome's JSON.

A tick is shown as a millisecond, where a run has no times. There are a track of slices for each thread, with its
operators, one for tensors, counters in bytes (live, footprint, unused), and instants for the peak and the begin of each
stage. A tensor takes the lowest lane that is free; the viewer shows all lanes as one track. Cascades and their stripes
are slices around their operators. Each of several memories has a track of tensors of its own, in which a copy from
another memory is the end of an arrow from the tensor that it was made of.

The format: protos/perfetto/trace/perfetto_trace.proto, and "Converting arbitrary timestamped data to Perfetto" of
https://perfetto.dev/docs. Packets are written as events come; memory holds live chunks and running operators only.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from importlib import import_module
from types import MappingProxyType
from typing import Any, BinaryIO

from attrs import define, field

from engine.exporters.events import layer_note, nanoseconds, without_overlaps
from engine.exporters.groups import Around, around, in_its_memory
from engine.text.errors import EngineError
from engine.text.names import to_unicode
from engine.trace.details import COPY_ENGINE
from engine.trace.trace import BEGIN, FREE, NOWHERE, OVERWRITE, Event, RunInfo, Trace

_SEQUENCE = 1
_BYTES = 3
"""CounterDescriptor.Unit.UNIT_SIZE_BYTES."""
_SLICE_BEGIN, _SLICE_END, _INSTANT, _COUNTER = 1, 2, 3, 4
"""TrackEvent.Type."""
_EXPLICIT = 3
"""TrackDescriptor.ChildTracksOrdering: by the ranks of siblings."""
_ROOT, _MARKS, _LIVE, _FOOTPRINT, _UNUSED, _ENGINE, _FIRST_THREAD, _FIRST_LANE = 1, 2, 3, 4, 5, 6, 10, 1_000_000
"""Numbers of tracks. Lanes of tensors are numbered on from the last one, those of each memory as they are needed."""
_COUNTERS = {_LIVE: "live bytes", _FOOTPRINT: "footprint bytes", _UNUSED: "unused bytes"}
Notes = Mapping[str, int | str]
_NONE: Notes = MappingProxyType({})


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes packets of a Trace message; times in nanoseconds, sizes in bytes. Raises EngineError without perfetto."""
    try:
        new_builder = import_module("perfetto.trace_builder.proto_builder").StreamingTraceProtoBuilder
    except ImportError as error:
        raise EngineError("perfetto is not installed: pip install -e '.[perfetto]'") from error
    tracks = _Tracks(new_builder(out), trace.facts, around(trace))
    tracks.open()
    for event in without_overlaps(trace):
        tracks.show(event)
    tracks.close()


@define(eq=False)
class _Tracks:
    """The lane of each live chunk, the tracks that are described, and the last value of each counter."""

    builder: Any
    facts: RunInfo
    around: Around
    lane: dict[int, tuple[int, int]] = field(factory=dict)
    """By chunk, its memory and the number of its lane."""
    free_lanes: defaultdict[int, list[int]] = field(factory=lambda: defaultdict(list))
    lanes: int = 0
    threads: set[int] = field(factory=set)
    counted: dict[int, int] = field(factory=dict)
    last: int = 0

    def open(self) -> None:
        """Describes the tracks that every file has."""
        self._describe(_ROOT, f"arenaplan {to_unicode(self.facts.model)}".rstrip(), rank=0)
        self._describe(_MARKS, "peak, evictions and stages", rank=1)
        for rank, (track, name) in enumerate(_COUNTERS.items()):
            self._describe(track, name, rank=2 + rank, unit=_BYTES)
        for number, weight in enumerate(self.around.weights if self.facts.memories else ()):
            lane = self._new_lane(weight.memory)
            notes: Notes = {"offset": weight.offset, "bytes": weight.bytes, "shape": weight.shape, "why": weight.reason}
            self._write(_SLICE_BEGIN, _FIRST_LANE + lane, weight.name, notes, self.around.moved.get(~number, ()))
            self.lane[~number] = weight.memory, lane  # no chunk has a number below 0

    def show(self, event: Event) -> None:
        """Writes the packets of the next event."""
        self.last = nanoseconds(event)
        if event.kind in {FREE, OVERWRITE}:
            self._leave(event.overwrites if event.kind == OVERWRITE else event.chunk)
        match event.kind:
            case "alloc" | "overwrite":
                self._arrive(event)
            case "begin" | "end":
                self._run(event)
            case "peak":
                self._peak(event)
            case "evict":
                self._mark(f"evict {event.tensor}", **dict(_details(event)))
            case "stage":
                self._mark(event.operator, arena_bytes=event.bytes, decided_by=event.tensor)
        values = event.live_bytes, event.footprint_bytes, event.footprint_bytes - event.live_bytes
        for track, value in zip(_COUNTERS, values, strict=True):
            self._count(track, value)

    def close(self) -> None:
        """Ends the slices of chunks that are still alive."""
        for chunk in tuple(self.lane):
            self._leave(chunk)

    def _arrive(self, event: Event) -> None:
        memory = self.facts.memory_at(event.offset)
        free = self.free_lanes[memory]
        lane = heappop(free) if free else self._new_lane(memory)
        self.lane[event.chunk] = memory, lane
        flows = self.around.moved.get(event.chunk, ())
        notes = dict(_details(in_its_memory(event, self.facts)))
        self._write(_SLICE_BEGIN, _FIRST_LANE + lane, event.tensor, notes, flows)

    def _new_lane(self, memory: int) -> int:
        name = "tensors" if memory == NOWHERE else self.facts.memories[memory].title
        self.lanes += 1
        self._describe(_FIRST_LANE + self.lanes, name, rank=100_000 + memory)
        return self.lanes

    def _leave(self, chunk: int) -> None:
        if chunk in self.lane:
            memory, lane = self.lane.pop(chunk)
            heappush(self.free_lanes[memory], lane)
            self._write(_SLICE_END, _FIRST_LANE + lane)

    def _run(self, event: Event) -> None:
        thread = max(event.thread, 0)
        track = _FIRST_THREAD + thread
        own = _ENGINE if self.around.is_beside(event.tick) else track
        if event.kind != BEGIN:
            self._write(_SLICE_END, own)
            for _ in range(self.around.closing.get(event.tick, 0)):
                self._write(_SLICE_END, track)
            return
        name = "operators" if event.thread < 0 else f"operators, thread {thread}"
        for each, title, rank in ((track, name, 10 + thread), (own, COPY_ENGINE, 9)):
            if each not in self.threads and (each == own or self.around.opening.get(event.tick)):
                self.threads.add(each)
                self._describe(each, title, rank=rank)
        for group in self.around.opening.get(event.tick, ()):
            self._write(_SLICE_BEGIN, track, group.name, group.notes)
        notes: Notes = {"schema": event.schema, "tick": event.tick, "stage": event.stage, **layer_note(event)}
        self._write(_SLICE_BEGIN, own, event.operator, notes)

    def _peak(self, event: Event) -> None:
        most = {"bytes": event.bytes, "possible_peak_bytes": self.facts.possible_peak_bytes}
        self._mark(f"peak: {event.bytes:,} bytes", **most, operator=event.operator, tick=event.tick)

    def _mark(self, name: str, **notes: int | str) -> None:
        self._write(_INSTANT, _MARKS, name, notes)

    def _count(self, track: int, value: int) -> None:
        if self.counted.get(track) == value:
            return
        self.counted[track] = value
        packet = self._event(_COUNTER, track)
        packet.track_event.counter_value = value
        self.builder.write_packet(packet)

    def _write(self, kind: int, track: int, name: str = "", notes: Notes = _NONE, flows: Iterable[int] = ()) -> None:
        packet = self._event(kind, track)
        packet.track_event.flow_ids.extend(flows)
        if kind != _SLICE_END:
            packet.track_event.name = to_unicode(name) or "(no name)"
        for key, value in notes.items():
            note = packet.track_event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = to_unicode(value)
        self.builder.write_packet(packet)

    def _event(self, kind: int, track: int) -> Any:
        packet = self.builder.create_packet()
        packet.timestamp, packet.trusted_packet_sequence_id = self.last, _SEQUENCE
        packet.track_event.type, packet.track_event.track_uuid = kind, track
        return packet

    def _describe(self, track: int, name: str, *, rank: int, unit: int = 0) -> None:
        packet = self.builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        descriptor = packet.track_descriptor
        descriptor.uuid, descriptor.name, descriptor.sibling_order_rank = track, name, rank
        if track == _ROOT:
            descriptor.child_ordering = _EXPLICIT
        else:
            descriptor.parent_uuid = _ROOT
        if unit:
            descriptor.counter.unit = unit
        self.builder.write_packet(packet)


def _details(event: Event) -> Iterator[tuple[str, int | str]]:
    names = ("offset", "bytes", "padding", "shape", "dtype", "role", "operator", "schema", "tick", "chunk", "stage")
    yield from ((name, getattr(event, name)) for name in names)
    yield from layer_note(event).items()
    if event.kind == OVERWRITE:
        yield "overwrites", event.overwrites
