"""The heaps that cut segments into blocks: what they ask of the kernel that runs them all, and what came of it.

The kernel runs plain where there are few events, and compiled where there are many.
"""

import numpy as np
from attrs import frozen

from allocator.errors import OutOfMemoryError
from allocator.heaps.events import Events
from allocator.heaps.simulated import NEVER, NOWHERE, Calls, HeapSegments, HeapTimeline, Simulated
from allocator.kernels import heap as kernel
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import Column


@frozen(eq=False)
class Demand:
    """The request of each id: bytes as the heap rounds them, pool (0 or 1), bytes of the segment that is got for it
    where none fits (if the heap grows so), and bytes that have to be left over for a free block to be split."""

    size: Column
    pool: Column
    segment: Column
    least_rest: Column


@frozen
class Rules:
    """Options of the kernel; see the fields of its state. `region`: the first segment, where segments double."""

    by_address: bool = False
    growth: int = kernel.IN_SEGMENTS
    releases: bool = False
    grain: int = 1
    region: int = 0
    limit: int = 2**62


def round_up(size: Column, step: int) -> Column:
    """Returns the sizes as multiples of `step`."""
    return -(-size // step) * step


def run_blocks(name: str, events: Events, demand: Demand, rules: Rules, capacity: int) -> Simulated:
    """Runs events on a heap of such rules. Raises OutOfMemoryError."""
    run = _HeapRun.of(events)
    arguments = run.mode.numbers(
        events.id, events.sign, demand.size, demand.pool, demand.segment, demand.least_rest, state_of(rules, capacity)
    )
    done = run.mode.kernel(kernel.simulate)(*arguments, *run.scratch, *run.segments, *run.places, *run.timeline)
    if done < len(events):
        raise run.out_of_memory(name, events, done, capacity)
    return run.simulated(name, events, arguments[-1])


def state_of(rules: Rules, capacity: int) -> Column:
    """Returns the state of an empty heap, as the kernel takes it."""
    state = np.zeros(kernel.STATE, np.int64)
    state[kernel.BY_ADDRESS], state[kernel.GROWTH] = rules.by_address, rules.growth
    state[kernel.RELEASES] = rules.releases
    state[kernel.CAPACITY], state[kernel.GRAIN] = capacity, rules.grain
    state[kernel.REGION], state[kernel.LIMIT] = rules.region, rules.limit
    return state


@frozen(eq=False)
class _HeapRun:
    """The arrays of one run, as the kernel takes them."""

    mode: KernelMode
    scratch: tuple[Numbers, ...]
    segments: tuple[Numbers, ...]
    places: tuple[Numbers, ...]
    timeline: tuple[Numbers, ...]

    @classmethod
    def of(cls, events: Events) -> "_HeapRun":
        mode = KernelMode.of(len(events))
        ids, allocs = len(events.size), int(np.count_nonzero(events.sign > 0))
        return cls(
            mode,
            mode.zeros(kernel.WIDTH * (1 + 2 * allocs), ids, allocs, allocs),
            mode.zeros(allocs, allocs, allocs, allocs),
            mode.zeros(ids, ids),
            mode.zeros(len(events), len(events), len(events)),
        )

    def out_of_memory(self, name: str, events: Events, row: int, capacity: int) -> OutOfMemoryError:
        used, reserved, largest_free = (int(c[row - 1]) if row else 0 for c in self.timeline)
        requested = int(events.size[events.id[row]])
        return OutOfMemoryError(
            name, requested, event=row, in_use=used, reserved=reserved, largest_free=largest_free, capacity=capacity
        )

    def simulated(self, name: str, events: Events, state: Numbers) -> Simulated:
        used, reserved, largest_free = self.timeline
        base, size, since, until = (np.asarray(c, np.int64)[: state[kernel.SEGMENTS]] for c in self.segments)
        offset, taken = (np.asarray(c, np.int64) for c in self.places)
        segments = HeapSegments(base, size, since, np.where(until > 0, until, NEVER))  # event 0 gives nothing back
        is_there = taken > 0
        return Simulated(
            name,
            HeapTimeline(events.tick, np.cumsum(events.delta), used, reserved, largest_free),
            calls_of(events, len(base), int(np.count_nonzero(until))),
            segments,
            np.where(is_there, offset, NOWHERE),
            np.where(is_there, taken, NOWHERE),
        )


def calls_of(events: Events, segment_allocs: int, segment_frees: int) -> Calls:
    """Returns the numbers of calls of a run, with those to the system."""
    called = events.sign[events.size[events.id] > 0]
    allocs = int(np.count_nonzero(called > 0))
    return Calls(allocs, len(called) - allocs, segment_allocs, segment_frees)
