"""The life of every byte as events: what is allocated, overwritten and freed in which tick, and what is live then."""

from collections.abc import Iterator

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
"""What an event overwrites that is no overwrite."""


@frozen
class Event:
    """One change: alloc | overwrite | free. `bytes` is the chunk's size, `live_bytes` what is live after it.

    `overwrites` is the chunk whose bytes an overwrite takes, and which ends there.
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


@frozen(eq=False)
class _Change:
    tick: int
    rank: int
    kind: str
    chunk: int
    delta: int
    overwrites: int = NOTHING


def trace(plan: PlacedPlan, mode: str = "static") -> tuple[Event, ...]:
    """All events of a run, in order; in one tick first frees, then allocations, then overwrites (MegEngine's order).

    "static" tells of the plan, "dynamic" of reference counting. Raises OptionError.
    """
    if mode == "static":
        return _events(plan, evolve(plan.chunks, size=plan.problem.size), plan.plan.offset)
    if mode == "dynamic":
        baseline = memory.derive(to_program(plan.lowered, plan.ids), overwrite=False, reuse=True)
        return _events(plan, baseline, np.full(len(baseline.size), NOWHERE))
    raise OptionError(f"mode {mode!r} is unknown; one of: static, dynamic")


def _events(plan: PlacedPlan, chunks: memory.Chunks, offsets: Column) -> tuple[Event, ...]:
    owners = plan.owners(chunks)
    made, live = [], 0
    for change in sorted(_changes(chunks), key=lambda c: (c.tick, c.rank, c.chunk)):
        live += change.delta
        chunk, operator = change.chunk, plan.lowered.tick_name(change.tick)
        size, at = int(chunks.size[chunk]), int(offsets[chunk])
        name = owners[chunk].name
        made.append(Event(change.tick, operator, change.kind, name, chunk, at, size, live, change.overwrites))
    return tuple(made)


def _changes(chunks: memory.Chunks) -> Iterator[_Change]:
    taken = dict(zip(chunks.src.tolist(), chunks.dest.tolist(), strict=True))
    ended_by_overwrite = set(taken.values())
    columns = (chunks.begin.tolist(), chunks.end.tolist(), chunks.size.tolist())
    for chunk, (begin, end, size) in enumerate(zip(*columns, strict=True)):
        if chunk in taken:
            yield _Change(begin, 2, "overwrite", chunk, size - int(chunks.size[taken[chunk]]), taken[chunk])
        else:
            yield _Change(begin, 1, "alloc", chunk, size)
        if chunk not in ended_by_overwrite:
            yield _Change(end, 0, "free", chunk, -size)
