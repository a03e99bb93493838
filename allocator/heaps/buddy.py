"""Binary buddies: blocks of 2**k bytes, halved and joined.

Knowlton, "A fast storage allocator", CACM 8 (1965); Knuth, The Art of Computer Programming, volume 1, section 2.5,
algorithms R and S. As there, the block of an order that was freed last is taken first.

Plain Python: dicts are the lists of free blocks (a dict gives back what was put in last, and lets go of any key, both
in constant time), so that no table of the whole memory is needed.
"""

from collections.abc import Iterator

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.errors import OutOfMemoryError, ProblemError
from allocator.heaps.blocks import calls_of
from allocator.heaps.events import Events
from allocator.heaps.server import NOBODY, Server
from allocator.heaps.simulated import NEVER, NOWHERE, HeapSegments, HeapTimeline, Simulated
from allocator.problem import NO_CAPACITY, Column


@frozen
class Buddy:
    """`block`: bytes of the smallest block; `growth`: the least bytes by which the heap grows; both powers of two, else
    ProblemError.

    Knuth's memory has a fixed size of 2**m. Here it grows at its end by aligned blocks, of `growth` bytes or more,
    until one (joined with its buddies, if they are free) is large enough.
    """

    name: str = "buddy"
    block: int = 64
    growth: int = 2 << 20

    def __attrs_post_init__(self) -> None:
        for size in (self.block, self.growth):
            if size < 1 or size & (size - 1):
                raise ProblemError(f"{size} bytes are no block of buddies: that is a power of two")

    def run(self, events: Events, capacity: int) -> Simulated:
        """Returns one event after the other."""
        heap = _BuddyHeap(self.block.bit_length() - 1, self.growth.bit_length() - 1, capacity)
        offset, taken = [NOWHERE] * len(events.size), [NOWHERE] * len(events.size)
        used, reserved, largest = list[int](), list[int](), list[int]()
        sizes, in_use = events.size.tolist(), 0
        for row, (one, sign) in enumerate(zip(events.id.tolist(), events.sign.tolist(), strict=True)):
            if sizes[one]:
                order = heap.order_of(sizes[one])
                if sign < 0:
                    heap.free(offset[one], order)
                elif (at := heap.alloc(order, row)) == NOWHERE:
                    raise OutOfMemoryError(
                        self.name,
                        sizes[one],
                        event=row,
                        in_use=in_use,
                        reserved=reserved[-1] if row else 0,
                        largest_free=largest[-1] if row else 0,
                        capacity=capacity,
                    )
                else:
                    offset[one], taken[one] = at, 1 << order
                in_use += sign << order
            used.append(in_use)
            reserved.append(heap.end)
            largest.append(heap.largest())
        return Simulated(
            self.name,
            HeapTimeline(events.tick, np.cumsum(events.delta), used, reserved, largest),
            calls_of(events, len(heap.grown), 0),
            heap.segments(),
            offset,
            taken,
        )

    def serve(self, sizes: Column, capacity: int) -> Server:
        """Returns an empty heap for requests of these sizes."""
        return _BuddyServer(
            sizes.tolist(), _BuddyHeap(self.block.bit_length() - 1, self.growth.bit_length() - 1, capacity)
        )


@define
class _BuddyHeap:
    """Free blocks by order: addresses, the one that was freed last at the end. `has` is a bit for each order."""

    smallest: int
    growth: int
    capacity: int = NO_CAPACITY
    end: int = 0
    has: int = 0
    blocks: list[dict[int, None]] = field(factory=lambda: [{} for _ in range(64)])
    grown: list[tuple[int, int, int]] = field(factory=list)

    def order_of(self, size: int) -> int:
        return max((size - 1).bit_length(), self.smallest)

    def largest(self) -> int:
        return 1 << self.has.bit_length() >> 1

    def alloc(self, order: int, event: int) -> int:
        """Allocates by algorithm R: the smallest block that is large enough, halved as long as half of it is."""
        fitting = self.has >> order
        if not fitting:
            if not self._grow(order, event):
                return NOWHERE
            fitting = self.has >> order
        split_order = order + (fitting & -fitting).bit_length() - 1
        blocks = self.blocks[split_order]
        at, _ = blocks.popitem()
        self.has ^= (not blocks) << split_order
        while split_order > order:
            split_order -= 1
            self._add(at + (1 << split_order), split_order)
        return at

    def free(self, at: int, order: int) -> None:
        """Frees by algorithm S: joins a block with its buddy as long as that one is free and whole."""
        while (buddy := at ^ 1 << order) in self.blocks[order]:
            del self.blocks[order][buddy]
            self.has ^= (not self.blocks[order]) << order
            at &= buddy
            order += 1
        self._add(at, order)

    def copy(self) -> "_BuddyHeap":
        return evolve(self, blocks=[dict(blocks) for blocks in self.blocks], grown=list(self.grown))

    def segments(self) -> HeapSegments:
        base, size, since = zip(*self.grown, strict=True) if self.grown else ((), (), ())
        return HeapSegments(base, size, since, [NEVER] * len(self.grown))

    def _add(self, at: int, order: int) -> None:
        self.blocks[order][at] = None
        self.has |= 1 << order

    def _grow(self, order: int, event: int) -> bool:
        """Grows by the largest blocks that addresses permit, until one is large enough.

        Returns whether that keeps the capacity.
        """
        start, most = self.end, max(order, self.growth, self.smallest)
        while not self.has >> order:
            at, piece = self.end, most
            if at:
                piece = min((at & -at).bit_length() - 1, most)
            self.end += 1 << piece
            self.free(at, piece)
        self.grown.append((start, self.end - start, event))
        return self.end <= self.capacity


@define(eq=False)
class _BuddyServer:
    """A heap for requests that come one by one. `places` has the address of each that is served."""

    sizes: list[int]
    heap: _BuddyHeap
    places: dict[int, int] = field(factory=dict)
    in_use: int = 0

    @property
    def reserved(self) -> int:
        return self.heap.end

    @property
    def knows_addresses(self) -> bool:
        return True

    def alloc(self, request: int) -> bool:
        if not self.sizes[request]:
            return True
        order = self.heap.order_of(self.sizes[request])
        heap = self.heap if self.heap.has >> order else self.heap.copy()  # where it may not grow, nothing has changed
        at = heap.alloc(order, 0)
        if at == NOWHERE:
            return False
        self.heap, self.places[request] = heap, at
        self.in_use += 1 << order
        return True

    def free(self, request: int) -> None:
        if self.sizes[request]:
            order = self.heap.order_of(self.sizes[request])
            self.heap.free(self.places.pop(request), order)
            self.in_use -= 1 << order

    def address(self, request: int) -> int:
        return self.places.get(request, 0)

    def needed(self, request: int) -> int:
        return 1 << self.heap.order_of(self.sizes[request]) if self.sizes[request] else 0

    def runs(self, request: int) -> Iterator[list[tuple[int, int]]]:  # noqa: ARG002 (there is one pool)
        used = [(at, one, self.needed(one)) for one, at in self.places.items()]
        free = [(at, NOBODY, 1 << order) for order, blocks in enumerate(self.heap.blocks) for at in blocks]
        yield [(one, size) for _, one, size in sorted(used + free)]
