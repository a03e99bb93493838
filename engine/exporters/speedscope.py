"""Writes the tensors of the peak, and when operators ran, for speedscope (https://www.speedscope.app).

The first profile has a stack for each tensor that is alive at the peak: role, layers, kind of operator, operator,
tensor; its weight is its bytes. Of several memories, that of the tensor is outermost, and two more profiles have the
weights in each, in bytes, and the time of its transfers. Where a run has times, each thread that ran operators has a
profile with a call for each, and so has a copy engine. Tensors of the peak and operators are kept in memory; the viewer
reads the whole file, too.

The format: file-format-schema.json of speedscope 1.25.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from attrs import define, field

from engine.exporters.events import alive_at_peak, nanoseconds, without_overlaps
from engine.exporters.groups import Around, between_memories
from engine.text.layer_names import layers_around
from engine.text.names import to_unicode
from engine.trace.details import COPY_ENGINE, NO_MEMORY, Weight
from engine.trace.trace import BEGIN, END, Event, RunInfo, Trace

_ENGINE = 1 << 31
"""The lane of the copy engine, behind those of all threads."""
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes JSON; weights in bytes, times in nanoseconds. It reads the trace twice."""
    frames = _Frames()
    head = {"$schema": SCHEMA, "name": _name(trace.facts), "exporter": "arenaplan", "activeProfileIndex": 0}
    beside = between_memories(trace)
    out.write(_text(head)[:-1] + b', "profiles": [\n' + _text(_peak(trace, frames)))
    for profile in _memories(trace.facts, beside.weights, frames):
        out.write(b",\n" + _text(profile))
    for lane, calls in sorted(_calls(trace, beside, frames).items()):
        out.write(b",\n")
        _write_calls(COPY_ENGINE if lane == _ENGINE else f"operators, thread {lane}", calls, out)
    out.write(b'\n], "shared": ' + _text({"frames": frames.shown()}) + b"}\n")


def _name(facts: RunInfo) -> str:
    name = f"arenaplan {facts.model}".rstrip()
    if facts.possible_peak_bytes > facts.peak_bytes:
        name += f" (another run may have {facts.possible_peak_bytes:,} bytes alive)"
    return to_unicode(name)


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


@define(eq=False)
class _Frames:
    """Numbers of names, in order of first use. The same name may be used in several sorts."""

    number: dict[tuple[str, str], int] = field(factory=dict)

    def of(self, sort: str, name: str) -> int:
        """Returns the number of a name, which may be a new one."""
        return self.number.setdefault((sort, to_unicode(name) or f"({sort} without a name)"), len(self.number))

    def shown(self) -> list[dict[str, str]]:
        """Returns the frames; the viewer shows the sort where other profiles have a file."""
        return [{"name": name, "file": sort} for sort, name in self.number]


def _peak(trace: Trace, frames: _Frames) -> dict[str, Any]:
    """Returns the profile of the peak, with tensors in the order in which they were allocated."""
    alive = [event for event in alive_at_peak(trace) if event.bytes]
    name = f"alive at the peak, in {trace.facts.peak_operator}" if alive else "nothing is ever alive"
    stacks = [list(_stack(event, trace.facts.memory_name(event.offset))) for event in alive]
    return _sampled(name, "bytes", stacks, [event.bytes for event in alive], frames)


def _memories(facts: RunInfo, weights: Sequence[Weight], frames: _Frames) -> Iterator[dict[str, Any]]:
    """Yields the profiles of several memories: the weights that lie in each, and the time of its transfers."""
    names = [part.name for part in facts.memories]
    placed = [weight for weight in weights if weight.memory != NO_MEMORY]
    if placed:
        stacks = [[("memory", names[w.memory]), ("role", "weight"), ("tensor", w.name)] for w in placed]
        yield _sampled("weights in memories", "bytes", stacks, [w.bytes for w in placed], frames)
    if names:
        times = [round(part.seconds * 1e9) for part in facts.memories]
        yield _sampled("transfers", "nanoseconds", [[("memory", name)] for name in names], times, frames)


def _sampled(
    name: str, unit: str, stacks: Sequence[Sequence[tuple[str, str]]], weights: Sequence[int], frames: _Frames
) -> dict[str, Any]:
    """Returns a profile of stacks of sorts and names, the outermost first, each with its weight."""
    samples = [[frames.of(*named) for named in stack] for stack in stacks]
    about = {"type": "sampled", "name": to_unicode(name), "unit": unit, "startValue": 0, "endValue": sum(weights)}
    return {**about, "samples": samples, "weights": weights}


def _stack(event: Event, memory: str) -> Iterator[tuple[str, str]]:
    """Yields the frames of a stack, the outermost first. Tensors that are fed have no operator."""
    if memory:
        yield "memory", memory
    yield "role", event.role
    if event.schema:
        yield from (("layer", layer) for layer in layers_around(event.operator))
        yield "kind of operator", event.schema
        yield "operator", event.operator
    yield "tensor", f"{event.tensor} [{event.shape}] {event.dtype}"


def _calls(trace: Trace, beside: Around, frames: _Frames) -> dict[int, "array[int]"]:
    """Returns frame, begin and end of each operator, joined, by thread; empty where the run has no times.

    Copies of a copy engine count as those of a thread of their own.
    """
    calls = dict[int, "array[int]"]()
    for event in without_overlaps(trace) if trace.facts.is_timed else ():
        lane = _ENGINE if beside.is_beside(event.tick) else event.thread
        if event.kind == BEGIN:
            numbers = calls.setdefault(lane, array("q"))
            numbers.extend((frames.of("operator", event.operator), nanoseconds(event)))
        elif event.kind == END:
            calls[lane].append(nanoseconds(event))
    return calls


def _write_calls(name: str, calls: "array[int]", out: BinaryIO) -> None:
    profile = {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": calls[-1]}
    out.write(_text(profile)[:-1] + b', "events": [')
    between = b""
    for frame, begin, end in zip(calls[::3], calls[1::3], calls[2::3], strict=True):
        opened, closed = ({"type": kind, "frame": frame, "at": at} for kind, at in (("O", begin), ("C", end)))
        out.write(between + _text(opened) + b",\n" + _text(closed))
        between = b",\n"
    out.write(b"]}")
