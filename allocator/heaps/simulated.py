"""What every heap is, and what comes of a run of events on it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.heaps.events import Events
from allocator.heaps.server import Server
from allocator.problem import Column, column

NOWHERE = -1
"""Offset of what has none: it has no bytes, was never allocated, or the heap knows no addresses."""
NEVER = -1
"""Event in which a segment was given back that never was."""


@frozen(eq=False)
class HeapTimeline:
    """Bytes after each event.

    `live`: as requested. `used`: with what the heap rounds up or does not split off. `reserved`: what the heap has got
    from the system. `largest_free`: the largest block that it could hand out without asking for more.
    """

    tick: Column = field(converter=column)
    live: Column = field(converter=column)
    used: Column = field(converter=column)
    reserved: Column = field(converter=column)
    largest_free: Column = field(converter=column)

    @property
    def waste(self) -> npt.NDArray[np.float64]:
        """Returns the share of the reserved bytes that were not requested, after each event; 0 where none are."""
        return _share(self.reserved - self.live, self.reserved)

    @property
    def fragmentation(self) -> npt.NDArray[np.float64]:
        """Returns the share of the free bytes that lie outside the largest free block; 0 where nothing is free.

        As in TensorFlow (`BFCAllocator::GetFragmentation`).
        """
        free = self.reserved - self.used
        return _share(free - self.largest_free, free)


@frozen
class Calls:
    """Counts of calls of the heap, and of its calls of the system: for a segment (or to grow), and to give one back.

    What has no bytes is never called for.
    """

    alloc: int
    free: int
    segment_alloc: int
    segment_free: int


@frozen(eq=False)
class HeapSegments:
    """Segments from the system: bytes [base, base + size), from event `begin` until event `end` or NEVER.

    A segment lies above all that came before it; no address is used a second time.
    """

    base: Column = field(converter=column)
    size: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)


@frozen(eq=False)
class Simulated:
    """A run on one heap. offset[i] is the address of id i (inside a segment), taken[i] its bytes there, or NOWHERE."""

    heap: str
    timeline: HeapTimeline
    calls: Calls
    segments: HeapSegments
    offset: Column = field(converter=column)
    taken: Column = field(converter=column)

    @property
    def peak_requested(self) -> int:
        """Returns the bytes that are live at once, at most; no heap can do with less."""
        return int(self.timeline.live.max(initial=0))

    @property
    def peak_used(self) -> int:
        """Returns the bytes that are handed out at once, at most."""
        return int(self.timeline.used.max(initial=0))

    @property
    def peak_reserved(self) -> int:
        """Returns the bytes that the heap holds at once, at most."""
        return int(self.timeline.reserved.max(initial=0))

    @property
    def overhead(self) -> float:
        """Returns the excess of the peak of reserved bytes over that of requested ones, as a share of the latter."""
        return self.peak_reserved / self.peak_requested - 1.0 if self.peak_requested else 0.0


class Heap(Protocol):
    """A model of an allocator that serves one event after the other and knows nothing of the next.

    Its options are its fields.
    """

    @property
    def name(self) -> str:
        """Returns the name under which a caller asks for it."""

    def run(self, events: Events, capacity: int, /) -> Simulated:
        """Serves all events. Raises OutOfMemoryError where it would have to reserve more than `capacity` bytes."""

    def serve(self, sizes: Column, capacity: int, /) -> Server:
        """Returns an empty heap for requests that come one by one; request i asks for `sizes[i]` bytes each time."""


def _share(part: Column, whole: Column) -> npt.NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
