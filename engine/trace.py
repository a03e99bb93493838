"""The life of every byte as events: what is allocated, overwritten and freed in which tick, and what is live then."""

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import evolve, frozen

from allocator import chunks as memory
from allocator.problem import Column
from engine.errors import OptionError
from engine.placed import PlacedPlan
from engine.steps import to_program

NOWHERE = -1
"""Offset of what a dynamic run allocates: it has no arena."""
NOTHING = -1
"""What an event overwrites that is no overwrite; the chunk of one that is none's."""
NOT_RUN = -1
"""Time and thread of an event in a trace that was planned and not run."""
MARK = "stage"
"""The kind of the event with which a stage begins, in a run of several; see `engine.stages.tale`."""


@frozen
class Event:
    """One change: alloc | overwrite | free; in a run that was timed also begin | end, of an operator; stage: a new one.

    `bytes` is the chunk's size, `live_bytes` what is live after it. `overwrites` is the chunk whose bytes an overwrite
    takes, and which ends there. `seconds` count from the start of the run; thread 0 is the caller's.
    """

    tick: int
    operator: str
    kind: str
    tensor: str
    chunk: int
    offset: int
    bytes: int
    live_bytes: int
    overwrites: int
    seconds: float = NOT_RUN
    thread: int = NOT_RUN


@frozen(eq=False)
class Change:
    """Of what is live, in a tick; of several at once the lowest rank comes first."""

    tick: int
    rank: int
    kind: str
    chunk: int
    delta: int
    overwrites: int = NOTHING


@frozen(eq=False)
class Tenants:
    """The chunks of a run of one mode, where they lie, and the tensor that each was made for."""

    plan: PlacedPlan
    chunks: memory.Chunks
    offset: Column
    names: Mapping[int, str]

    def event(self, change: Change, tick: int, live: int) -> Event:
        """What happened to a chunk."""
        chunk, name = change.chunk, self.plan.lowered.tick_name(tick)
        size, at, tensor = int(self.chunks.size[chunk]), int(self.offset[chunk]), self.names[chunk]
        return Event(tick, name, change.kind, tensor, chunk, at, size, live, change.overwrites)


def trace(plan: PlacedPlan, mode: str = "static") -> tuple[Event, ...]:
    """All events of a run, in order; in one tick first frees, then allocations, then overwrites (MegEngine's order).

    "static" tells of the plan, "dynamic" of reference counting. Raises OptionError.
    """
    found, made, live = tenants(plan, mode), list[Event](), 0
    for change in sorted(changes(found.chunks), key=lambda c: (c.tick, c.rank, c.chunk)):
        live += change.delta
        made.append(found.event(change, change.tick, live))
    return tuple(made)


def tenants(plan: PlacedPlan, mode: str) -> Tenants:
    """What there is to tell of. Raises OptionError for a mode that is unknown."""
    if mode == "static":
        return _tenants(plan, evolve(plan.chunks, size=plan.problem.size), plan.plan.offset)
    if mode == "dynamic":
        baseline = memory.derive(to_program(plan.lowered, plan.ids), overwrite=False, reuse=True)
        return _tenants(plan, baseline, np.full(len(baseline.size), NOWHERE))
    raise OptionError(f"mode {mode!r} is unknown; one of: static, dynamic")


def _tenants(plan: PlacedPlan, chunks: memory.Chunks, offset: Column) -> Tenants:
    return Tenants(plan, chunks, offset, {chunk: value.name for chunk, value in plan.owners(chunks).items()})


def changes(chunks: memory.Chunks) -> Iterator[Change]:
    """Of all chunks, in no order."""
    taken = dict(zip(chunks.src.tolist(), chunks.dest.tolist(), strict=True))
    ended_by_overwrite = set(taken.values())
    columns = (chunks.begin.tolist(), chunks.end.tolist(), chunks.size.tolist())
    for chunk, (begin, end, size) in enumerate(zip(*columns, strict=True)):
        if chunk in taken:
            yield Change(begin, 2, "overwrite", chunk, size - int(chunks.size[taken[chunk]]), taken[chunk])
        else:
            yield Change(begin, 1, "alloc", chunk, size)
        if chunk not in ended_by_overwrite:
            yield Change(end, 0, "free", chunk, -size)
