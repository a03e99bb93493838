"""Why no plan exists: more bytes are alive in one tick than the memories have in which they can lie."""

from collections.abc import Iterator

import numpy as np

from allocator.breadths import first_tick
from allocator.memories.memory import Memory
from allocator.memories.plan import Shortage
from allocator.memories.problem import Mask, MemoryProblem
from allocator.memories.units import Units
from allocator.problem import Plan

_MOST_SETS = 4_096
"""Sets of memories that are looked at; 12 memories have as many."""


def find_shortage(units: Units) -> tuple[Shortage, ...]:
    """Returns the first proof that no plan exists, in a tuple; nothing where none is found.

    For each set of memories, the chunks that can lie in no other one need as much room as the set has, in each tick.
    The sets are unions of those in which some chunk can lie, the smallest first.
    """
    problem = units.problem
    can = units.can[units.unit_of]
    if not can.any(axis=1).all():
        chunk = int(np.argmin(can.any(axis=1)))
        return (Shortage(int(problem.chunks.begin[chunk]), (), (chunk,), int(problem.chunks.size[chunk]), 0),)
    if problem.chunks.conflicts is not None:
        return ()
    for chosen in _unions(units.can):
        shortage = _shortage_in(units, chosen)
        if shortage:
            return shortage
    return ()


def _unions(can: Mask) -> Iterator[Mask]:
    """Yields unions of the sets of memories of some units, the smallest first."""
    rows = {tuple(row) for row in np.unique(can, axis=0).tolist()} if len(can) else set()
    unions = set(rows)
    waiting = sorted(rows)
    while waiting and len(unions) < _MOST_SETS:
        one = waiting.pop(0)
        new = {tuple(a or b for a, b in zip(one, other, strict=True)) for other in rows} - unions
        unions |= new
        waiting += sorted(new)
    for row in sorted(unions, key=lambda row: (sum(row), row)):
        yield np.array(row, bool)


def _shortage_in(units: Units, chosen: Mask) -> tuple[Shortage, ...]:
    problem = units.problem
    is_in: Mask = np.logical_not((units.can & ~chosen).any(axis=1))
    load = units.load(is_in)
    capacity = sum(memory.capacity for memory, is_chosen in zip(problem.memories, chosen, strict=True) if is_chosen)
    if not len(load) or load.max() <= capacity:
        return ()
    row = int(load.argmax())
    alive = is_in[units.part_unit] & (units.first <= row) & (row < units.last)
    tick, chunks = int(units.ticks[row]), problem.chunks
    enter = first_tick(chunks)
    in_unit = np.zeros(len(units), bool)
    in_unit[units.part_unit[alive]] = True
    rows = np.flatnonzero(in_unit[units.unit_of] & (enter <= tick) & (tick < chunks.end) & (chunks.size > 0))
    return (Shortage(tick, tuple(np.flatnonzero(chosen).tolist()), tuple(rows.tolist()), int(load[row]), capacity),)


def reason_of(problem: MemoryProblem, shortage: Shortage) -> str:
    """Returns a shortage as a sentence."""
    if not shortage.memories:
        return _reason_of_chunk(problem, shortage.chunks[0])
    names = ", ".join(repr(problem.memories[m].name) for m in shortage.memories)
    return (
        f"{len(shortage.chunks)} chunks that can lie only in {names} need {shortage.nbytes} bytes in tick "
        f"{shortage.tick}, and {shortage.capacity} are there"
    )


def reason_of_bound(memory: Memory, plan: Plan) -> str:
    """Returns why chunks that can lie in a memory alone do not fit, by the bound of their plan, as a sentence.

    Where that proves nothing, it says so.
    """
    if plan.lower_bound <= memory.capacity:
        return (
            f"no plan was found in the {memory.capacity} bytes of {memory.name!r}: one needs {plan.arena_bytes}, and "
            f"none fewer than {plan.lower_bound} ({plan.bound.reason})"
        )
    return (
        f"chunks that can lie only in {memory.name!r} need {plan.lower_bound} bytes ({plan.bound.reason}), and "
        f"{memory.capacity} are there"
    )


def _reason_of_chunk(problem: MemoryProblem, chunk: int) -> str:
    size, written = int(problem.chunks.size[chunk]), int(problem.written_bytes[chunk])
    allowed = [memory for m, memory in enumerate(problem.memories) if problem.allowed[chunk, m]]
    there = ", ".join(f"{m.name!r} has {m.capacity}{'' if m.writable else ' and is read-only'}" for m in allowed)
    return (
        f"chunk {chunk} of {size} bytes{', which is written,' if written else ''} can lie in no memory with its chain: "
        f"{there or 'none is allowed'}"
    )
