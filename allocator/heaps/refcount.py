"""Reference counting with no fragmentation: what a perfect dynamic allocator would need."""

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from allocator.errors import OutOfMemoryError
from allocator.heaps.blocks import calls_of
from allocator.heaps.events import Events
from allocator.heaps.server import Server
from allocator.heaps.simulated import NOWHERE, HeapSegments, HeapTimeline, Simulated
from allocator.problem import Column


@frozen
class Refcount:
    """Reserves what is live, to the byte, and gives it back at once. It knows no addresses, and so no segments.

    It is no allocator that could be built: blocks that never move cannot always be packed. A bound for those below.
    """

    name: str = "refcount"

    def run(self, events: Events, capacity: int) -> Simulated:
        """Returns all events at once."""
        live, nothing = np.cumsum(events.delta), np.zeros(len(events), np.int64)
        if (live > capacity).any():
            row = int(np.argmax(live > capacity))
            in_use = int(live[row - 1]) if row else 0
            raise OutOfMemoryError(
                self.name,
                int(events.delta[row]),
                event=row,
                in_use=in_use,
                reserved=in_use,
                largest_free=0,
                capacity=capacity,
            )
        nowhere, calls = np.full(len(events.size), NOWHERE), calls_of(events, 0, 0)
        return Simulated(
            self.name,
            HeapTimeline(events.tick, live, live, live, nothing),
            calls_of(events, calls.alloc, calls.free),
            HeapSegments((), (), (), ()),
            nowhere,
            nowhere,
        )

    def serve(self, sizes: Column, capacity: int) -> Server:
        """Returns an empty heap for requests of these sizes."""
        return _Counter(sizes.tolist(), capacity)


@define(eq=False)
class _Counter:
    sizes: list[int]
    capacity: int
    in_use: int = field(default=0, init=False)

    @property
    def reserved(self) -> int:
        return self.in_use

    @property
    def knows_addresses(self) -> bool:
        return False

    def alloc(self, request: int) -> bool:
        if self.in_use + self.sizes[request] > self.capacity:
            return False
        self.in_use += self.sizes[request]
        return True

    def free(self, request: int) -> None:
        self.in_use -= self.sizes[request]

    def address(self, request: int) -> int:  # noqa: ARG002 (the same for all)
        return 0

    def needed(self, request: int) -> int:
        return self.sizes[request]

    def runs(self, request: int) -> Iterator[list[tuple[int, int]]]:  # noqa: ARG002 (the same for all)
        return iter(())
