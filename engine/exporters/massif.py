"""Writes the live bytes over time as a file of Massif, the heap profiler of Valgrind; `ms_print` draws it as text.

"Useful" bytes are those of tensors, "extra" bytes are their padding; together they are the live bytes. The unused
bytes of an arena or a heap are left out: a graph of the footprint of an arena would be a flat line. `desc` has it.

The format is documented by its reader alone: ms_print of Valgrind 3.19.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import BinaryIO

from attrs import define, field, frozen

from engine.exporters.events import TICK, LiveChunks, nanoseconds
from engine.text.names import without_comments
from engine.trace.trace import ALLOC, FREE, OVERWRITE, PEAK, Event, RunInfo, Trace

SNAPSHOTS = 200
"""The most snapshots besides the first one and the peak; the graph of ms_print has 72 columns."""
_LEVELS = tuple(map(attrgetter, ("schema", "operator", "tensor")))
"""Levels of the tree of the tensors that are alive at the peak; where there are several memories, these stand above."""
_Level = Callable[[Event], str]
_CHANGES = (ALLOC, OVERWRITE, FREE)
_RULE = "#-----------\n"


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes text; times in ticks (unit "i") or milliseconds, sizes in bytes. It reads the trace twice."""
    out.write(_head(trace.facts).encode())
    for number, snapshot in enumerate(_snapshots(trace)):
        out.write(f"{_RULE}snapshot={number}\n{_RULE}{snapshot.text(trace.facts)}".encode())


def _head(facts: RunInfo) -> str:
    sizes = {"arena": facts.arena_bytes, "lower bound": facts.lower_bound, "footprint": facts.footprint_bytes}
    if facts.policy:
        sizes["possible peak of any run"] = facts.possible_peak_bytes
    description = ", ".join(f"{name} {size:,} B" for name, size in sizes.items())
    if not facts.peak_bytes:
        description += ", nothing is ever alive"
    description = "; ".join((description, *(without_comments(part.title) for part in facts.memories)))
    run = " ".join(filter(None, (facts.mode, facts.heap)))
    unit = "ms" if facts.is_timed else "i"
    return f"desc: {run} run: {description}\ncmd: arenaplan trace {without_comments(facts.model)}\ntime_unit: {unit}\n"


@frozen
class _Snapshot:
    """The live bytes at one time; for the snapshot of the peak also the events that began the live chunks."""

    nanoseconds: int = 0
    live: int = 0
    padding: int = 0
    alive: tuple[Event, ...] = ()
    at: str = ""

    def text(self, facts: RunInfo) -> str:
        """Returns the lines of the snapshot."""
        time = f"{self.nanoseconds / 1e6:.3f}" if facts.is_timed else str(self.nanoseconds // TICK)
        sizes = f"mem_heap_B={self.live - self.padding}\nmem_heap_extra_B={self.padding}\nmem_stacks_B=0\n"
        if not self.alive:
            return f"time={time}\n{sizes}heap_tree=empty\n"
        name = f"(tensors alive at the peak, in {without_comments(self.at)})"
        tree = "".join(_tree(self.alive, name, _levels(facts)))
        return f"time={time}\n{sizes}heap_tree=peak\n{tree}"


def _levels(facts: RunInfo) -> Sequence[_Level]:
    def memory(event: Event) -> str:
        return facts.memory_name(event.offset)

    return (memory, *_LEVELS) if facts.memories else _LEVELS


def _snapshots(trace: Trace) -> Iterator[_Snapshot]:
    """Yields a start without bytes, the peak, and for each of equal parts of the trace its highest snapshot."""
    yield _Snapshot()
    changes = sum(event.kind in _CHANGES for event in trace)
    sampler = _Sampler(-(-changes // SNAPSHOTS))
    for event in trace:
        yield from sampler.enter(event)
    yield from sampler.close()


@define(eq=False)
class _Sampler:
    """The highest snapshot of the current part of a trace (`kept`); `seen` of its `length` changes are read."""

    length: int
    seen: int = 0
    kept: list[_Snapshot] = field(factory=list)
    alive: LiveChunks = field(factory=LiveChunks)

    def enter(self, event: Event) -> Iterator[_Snapshot]:
        """Takes the next event, and yields the snapshots that it completes."""
        if event.kind == PEAK:
            yield from (kept for kept in self.close() if kept.live < event.live_bytes)
            yield _Snapshot(*self._sizes(event), tuple(self.alive.born.values()), event.operator)
        elif event.kind in _CHANGES:
            self.alive.enter(event)
            self.seen += 1
            if not self.kept or event.live_bytes > self.kept[0].live:
                self.kept = [_Snapshot(*self._sizes(event))]
            if self.seen >= self.length:
                yield from self.close()

    def _sizes(self, event: Event) -> tuple[int, int, int]:
        return nanoseconds(event), event.live_bytes, self.alive.padding

    def close(self) -> Iterator[_Snapshot]:
        """Ends the current part, and yields its snapshot."""
        yield from self.kept
        self.kept, self.seen = [], 0


def _tree(events: Sequence[Event], name: str, levels: Sequence[_Level], depth: int = 0) -> Iterator[str]:
    """Yields a line for the chunks of these events together, and below it the lines of its parts, the largest first."""
    parts = _parts(events, levels)
    size = sum(_useful(e) for e in events)
    yield f"{' ' * depth}n{len(parts)}: {size} {name}\n"
    for part, members in parts:
        yield from _tree(members, part, levels[1:], depth + 1)


def _parts(events: Sequence[Event], levels: Sequence[_Level]) -> list[tuple[str, list[Event]]]:
    if not levels:
        return []
    parts = [(name, list(members)) for name, members in groupby(sorted(events, key=levels[0]), levels[0])]
    named = [(_named(name, members[0], is_tensor=not levels[1:]), members) for name, members in parts]
    return sorted(named, key=lambda part: -sum(map(_useful, part[1])))


def _named(name: str, event: Event, *, is_tensor: bool) -> str:
    shape = f" [{event.shape}] {event.dtype} {event.role}" if is_tensor else ""
    return f"{without_comments(name) or event.role}{shape}"


def _useful(event: Event) -> int:
    return event.bytes - event.padding
