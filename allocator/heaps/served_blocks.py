"""The heaps that cut segments into blocks, one request after the other; the same functions as in a run of events."""

from collections.abc import Iterator

from attrs import define, field

from allocator.heaps.blocks import Demand, Rules, state_of
from allocator.heaps.server import NOBODY
from allocator.kernels import heap as kernel
from allocator.kernels.treap import BEHIND, TOP


def serve_blocks(demand: Demand, rules: Rules, capacity: int) -> "BlockServer":
    """Returns an empty heap of such rules."""
    size, pool = demand.size.tolist(), demand.pool.tolist()
    segment, least_rest = demand.segment.tolist(), demand.least_rest.tolist()
    server = BlockServer(size, pool, segment, least_rest, state_of(rules, capacity).tolist())
    kernel.clear(server.blocks)
    return server


def _zeros() -> list[int]:
    return [0] * 16


@define(eq=False)
class BlockServer:
    """A heap as the kernel runs it plain, on lists that grow. `held` has the block of each request that is served."""

    size: list[int]
    pool: list[int]
    segment: list[int]
    least_rest: list[int]
    state: list[int]
    blocks: list[int] = field(factory=lambda: [0] * (4 * kernel.WIDTH))
    base: list[int] = field(factory=_zeros)
    bytes_of: list[int] = field(factory=_zeros)
    since: list[int] = field(factory=_zeros)
    until: list[int] = field(factory=_zeros)
    heads: list[int] = field(factory=_zeros)
    head_of: list[int] = field(factory=_zeros)
    held: dict[int, int] = field(factory=dict)
    holder: dict[int, int] = field(factory=dict)

    @property
    def in_use(self) -> int:
        """Returns the bytes that are handed out."""
        return self.state[kernel.USED]

    @property
    def reserved(self) -> int:
        """Returns the bytes that the heap holds."""
        return self.state[kernel.RESERVED]

    @property
    def knows_addresses(self) -> bool:
        """Returns that blocks have addresses."""
        return True

    def alloc(self, request: int) -> bool:
        """Serves a request, if there is room."""
        wanted = self.size[request]
        if not wanted:
            return True
        self._make_room()
        columns = (self.base, self.bytes_of, self.since, self.until, self.heads, self.head_of)
        rules = (self.pool[request], self.segment[request], self.least_rest[request])
        block = kernel.allocate(self.blocks, self.state, *columns, wanted, *rules)
        if block:
            self.held[request], self.holder[block] = block, request
        return block > 0

    def free(self, request: int) -> None:
        """Takes the bytes of a request back."""
        if self.size[request]:
            block = self.held.pop(request)
            del self.holder[block]
            kernel.free(self.blocks, self.state, block)

    def address(self, request: int) -> int:
        """Returns the first byte of a request that is served."""
        return self.blocks[self.held[request] + kernel.ADDRESS] if self.size[request] else 0

    def needed(self, request: int) -> int:
        """Returns the bytes that a request takes, as the heap rounds them."""
        return self.size[request]

    def runs(self, request: int) -> Iterator[list[tuple[int, int]]]:
        """Yields the segments of the request's pool; a heap that grows at its end may go on up to its capacity."""
        at_end = self.state[kernel.GROWTH] == kernel.AT_END
        segments = min(self.state[kernel.HEADS], 1) if at_end else self.state[kernel.HEADS]
        for k in range(segments):
            block = self.head_of[self.heads[k]]
            if self.blocks[block + kernel.POOL] == self.pool[request]:
                beyond = self.state[kernel.CAPACITY] - self.reserved if at_end else 0
                yield [*self._run(block), *([(NOBODY, beyond)] if beyond > 0 else [])]

    def _run(self, block: int) -> Iterator[tuple[int, int]]:
        while block:
            yield self.holder.get(block, NOBODY), self.blocks[block + kernel.SIZE]
            block = self.blocks[block + BEHIND]

    def _make_room(self) -> None:
        """Makes the lists long enough for one more segment and two more blocks."""
        for column in (self.base, self.bytes_of, self.since, self.until, self.heads, self.head_of):
            if self.state[kernel.SEGMENTS] + 1 >= len(column):
                column.extend([0] * len(column))
        if self.blocks[TOP] + 3 * kernel.WIDTH >= len(self.blocks):
            self.blocks.extend([0] * len(self.blocks))
