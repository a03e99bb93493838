"""Writes the tensors of the peak, and when operators ran, for speedscope (https://www.speedscope.app).

The first profile has a stack for each tensor that is alive at the peak: role, layers, kind of operator, operator,
tensor; its weight is its bytes. Where a run has times, each thread that ran operators has a profile with a call for
each. Tensors of the peak and operators are kept in memory; the viewer reads the whole file, too.

The format: file-format-schema.json of speedscope 1.25.
"""

import json
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO

from attrs import define, field

from engine.exporters.events import alive_at_peak, nanoseconds, without_overlaps
from engine.text.layer_names import layers_around
from engine.text.names import to_unicode
from engine.trace.trace import BEGIN, END, Event, RunInfo, Trace

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes JSON; weights in bytes, times in nanoseconds. It reads the trace twice."""
    frames = _Frames()
    head = {"$schema": SCHEMA, "name": _name(trace.facts), "exporter": "arenaplan", "activeProfileIndex": 0}
    out.write(_text(head)[:-1] + b', "profiles": [\n' + _text(_peak(trace, frames)))
    for thread, calls in sorted(_calls(trace, frames).items()):
        out.write(b",\n")
        _write_calls(f"operators, thread {thread}", calls, out)
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
    samples = [[frames.of(sort, name) for sort, name in _stack(event)] for event in alive]
    weights = [event.bytes for event in alive]
    name = f"alive at the peak, in {trace.facts.peak_operator}" if alive else "nothing is ever alive"
    about = {"type": "sampled", "name": to_unicode(name), "unit": "bytes", "startValue": 0, "endValue": sum(weights)}
    return {**about, "samples": samples, "weights": weights}


def _stack(event: Event) -> Iterator[tuple[str, str]]:
    """Yields the frames of a stack, the outermost first. Tensors that are fed have no operator."""
    yield "role", event.role
    if event.schema:
        yield from (("layer", layer) for layer in layers_around(event.operator))
        yield "kind of operator", event.schema
        yield "operator", event.operator
    yield "tensor", f"{event.tensor} [{event.shape}] {event.dtype}"


def _calls(trace: Trace, frames: _Frames) -> dict[int, "array[int]"]:
    """Returns frame, begin and end of each operator, joined, by thread; empty where the run has no times."""
    calls = dict[int, "array[int]"]()
    for event in without_overlaps(trace) if trace.facts.is_timed else ():
        if event.kind == BEGIN:
            numbers = calls.setdefault(event.thread, array("q"))
            numbers.extend((frames.of("operator", event.operator), nanoseconds(event)))
        elif event.kind == END:
            calls[event.thread].append(nanoseconds(event))
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
