"""The time of copies between memories: when a copy engine makes each of them, and how long calls wait for it.

A call takes the seconds of its transfers, and those of its operations. Calls run one after the other, and so do the
copies of the engine, each as soon as the schedule lets it. That calls and copies beside them share the bandwidth of a
memory is left out.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from attrs import frozen

from allocator.memories.problem import Seconds, transfer_seconds
from engine.lower.calls import Call, Lowered
from engine.lower.costs import operation_seconds
from engine.lower.schedule import BARRIER, Schedule
from engine.lower.traffic import accesses
from engine.planning.memories.placed import InMemories


@frozen
class CallTime:
    """The begin and the end of the call of a tick, in seconds from the start of a run.

    `is_beside`: it is a copy that the engine makes.
    """

    tick: int
    begin: float
    end: float
    is_beside: bool


@frozen
class CopyTimes:
    """The copies in the order of ticks, the seconds of all of them, and those that calls wait for them."""

    copies: tuple[CallTime, ...] = ()
    seconds: float = 0.0
    waiting: float = 0.0


def copies_in(lowered: Lowered) -> Iterator[Call]:
    """Yields the copies that a copy engine can make."""
    return (call for call in lowered.calls if not lowered.engine_copies.keys().isdisjoint(call.outputs))


def engine_ticks(lowered: Lowered, placed: Sequence[InMemories]) -> Collection[int]:
    """Returns the ticks of the copies that the engine makes: those between memories that it reaches."""
    return [
        call.tick
        for memories in placed
        for call in copies_in(lowered)
        if all(
            memories.memories[int(memories.assigned.memory[memories.contents.row_of[v]])].copy_engine
            for v in (*call.inputs, *call.outputs)
        )
    ]


def tick_seconds(lowered: Lowered, memories: InMemories) -> Seconds:
    """Returns the seconds of each tick: of its transfers, where everything lies, and of its operations."""
    rows = np.array(
        [
            (access.tick, row, *moved)
            for access in accesses(lowered)
            for row, moved in access.by_row(memories.contents.row_of).items()
        ],
        np.int64,
    ).reshape(-1, 4)
    ticks, row, read, written = rows.T
    everywhere = transfer_seconds(memories.memories, read, written, np.ones_like(read))
    here = everywhere[np.arange(len(row)), memories.assigned.memory[row]]
    seconds: Seconds = np.bincount(ticks, here, len(lowered.instructions) + 2).astype(float)
    for call in lowered.calls:
        seconds[call.tick] += operation_seconds(call)
    return seconds


def copy_times(lowered: Lowered, schedule: Schedule, memories: InMemories) -> CopyTimes:
    """Returns when the copies of a schedule run which an engine can make, and how long calls wait for them.

    A copy from or to a memory that the engine does not reach is a call like all others, for which they wait.
    """
    copies = {call.tick for call in copies_in(lowered)}
    if not copies:
        return CopyTimes()
    times = call_times(lowered, schedule, memories)
    computing = sum(time.end - time.begin for time in times if time.tick not in copies)
    of_copies = tuple(time for time in times if time.tick in copies)
    waiting = max(max(time.end for time in times) - computing, 0.0)
    return CopyTimes(of_copies, sum(time.end - time.begin for time in of_copies), waiting)


def call_times(lowered: Lowered, schedule: Schedule, memories: InMemories) -> list[CallTime]:
    """Returns when calls run one after the other, with the copies of an engine beside them, in the order of ticks."""
    by_engine, seconds = set(engine_ticks(lowered, (memories,))), tick_seconds(lowered, memories)
    ticks = schedule.tick.tolist()
    sources: list[list[int]] = [[] for _ in ticks]
    for before, after in zip(schedule.before.tolist(), schedule.after.tolist(), strict=True):
        sources[after].append(before)
    ends, last, times = list[float](), {False: 0.0, True: 0.0}, list[CallTime]()
    for tick, waits in zip(ticks, sources, strict=True):
        is_beside = tick in by_engine
        begin = max((last[is_beside], *(ends[node] for node in waits)))
        ends.append(begin + (0.0 if tick == BARRIER else float(seconds[tick])))
        if tick != BARRIER:
            last[is_beside] = ends[-1]
            times.append(CallTime(tick, begin, ends[-1], is_beside))
    return times
