"""PyTorch's caching allocator for CUDA: c10/cuda/CUDACachingAllocator.cpp, with its default settings.

Followed function by function: `round_size`, `get_pool`, `get_allocation_size`, `get_free_block`, `should_split`,
`alloc_found_block`, `free_block`, `try_merge_blocks`, and in `malloc` what happens when the device is full
(`release_cached_blocks`). Names and values of the constants are those of the source.
"""

import numpy as np
from attrs import frozen

from allocator.heaps.blocks import Demand, Rules, round_up, run_blocks
from allocator.heaps.events import Events
from allocator.heaps.served_blocks import serve_blocks
from allocator.heaps.server import Server
from allocator.heaps.simulated import Simulated
from allocator.problem import Column

MIN_BLOCK_SIZE = 512
"""All sizes are rounded up to multiples of it, and so much has to be left of a block of the small pool to split it."""
SMALL_SIZE = 1 << 20
"""The largest request of the small pool, and more than so much has to be left of a large block to split it."""
SMALL_BUFFER = 2 << 20
"""Segments of the small pool."""
MIN_LARGE_ALLOC = 10 << 20
"""Requests from here on get a segment of their own size."""
LARGE_BUFFER = 20 << 20
"""Segments for requests of the large pool below that."""
ROUND_LARGE = 2 << 20
"""Such a segment's size is a multiple of this."""


@frozen
class PyTorch:
    """One stream, no CUDA graphs; `max_split_size`, expandable segments, garbage collection and rounding to powers of
    two are off, as they are by default.

    Of blocks of one size the one at the lowest address is taken; the model gives ascending addresses to segments,
    cudaMalloc promises none.
    """

    name: str = "pytorch"

    def run(self, events: Events, capacity: int) -> Simulated:
        """Returns one event after the other, on two pools."""
        return run_blocks(self.name, events, self._demand(events.size), self._rules(), capacity)

    def serve(self, sizes: Column, capacity: int) -> Server:
        """Returns an empty heap for requests of these sizes."""
        return serve_blocks(self._demand(sizes), self._rules(), capacity)

    def _demand(self, sizes: Column) -> Demand:
        size = round_up(sizes, MIN_BLOCK_SIZE)
        is_small = size <= SMALL_SIZE
        least_rest = np.where(is_small, MIN_BLOCK_SIZE, SMALL_SIZE + 1)
        return Demand(size, (~is_small).astype(np.int64), _segments(size), least_rest)

    def _rules(self) -> Rules:
        return Rules(releases=True)


def _segments(size: Column) -> Column:
    large = np.where(size < MIN_LARGE_ALLOC, LARGE_BUFFER, round_up(size, ROUND_LARGE))
    return np.where(size <= SMALL_SIZE, SMALL_BUFFER, large).astype(np.int64)
