"""Best fit with coalescing: the arena of TensorFlow, and that of onnxruntime, which was made from it.

TensorFlow: tsl/framework/bfc_allocator.cc and .h; onnxruntime: onnxruntime/core/framework/bfc_arena.cc and .h. Followed
function by function: `RoundedBytes`, `AllocateRawInternal`, `Extend`, `FindChunkPtr`, `SplitChunk`, `TryToCoalesce`
(`FreeAndMaybeCoalesce`), `DeallocateFreeRegions`.

Both keep free chunks in 21 bins: bin b has chunks of 256 << b bytes and more, up to the next bin, sorted by size and
address; the search begins in the bin of the request and goes upwards. Bins are ranges of sizes that follow each other,
so it finds the first chunk that is large enough in the order of (size, address) of all: the model needs no bins.
"""

from enum import StrEnum

import numpy as np
from attrs import frozen

from allocator.errors import ProblemError
from allocator.heaps.blocks import Demand, Rules, round_up, run_blocks
from allocator.heaps.events import Events
from allocator.heaps.served_blocks import serve_blocks
from allocator.heaps.server import Server
from allocator.heaps.simulated import Simulated
from allocator.kernels.heap import DOUBLING, IN_SEGMENTS
from allocator.problem import Column

MIN_ALLOCATION_SIZE = 256
"""kMinAllocationSize: sizes are rounded up to multiples of it."""
MAX_DEAD_BYTES = 128 << 20
"""A chunk is split if twice the request fits into it, or if so many bytes would be left over."""
_NO_LIMIT = 2**62


class Extension(StrEnum):
    """Ways in which the arena grows (onnxruntime's ArenaExtendStrategy)."""

    NEXT_POWER_OF_TWO = "kNextPowerOfTwo"
    """The arena grows by the next region, doubled until the request fits. If that needs no doubling, the region
    after it is doubled."""
    SAME_AS_REQUESTED = "kSameAsRequested"
    """The arena grows by the bytes of the request."""


@frozen
class Bfc:
    """An arena. `region`: bytes of its first region, and `max_region` of the largest that it doubles to unasked.

    `releases`: whether regions of which no byte is used are given back before it runs out of memory. (TensorFlow does
    so only if the request can be served then; if it cannot, a simulation ends in any case.)
    """

    name: str
    region: int
    max_region: int = _NO_LIMIT
    max_dead_bytes: int = MAX_DEAD_BYTES
    extension: Extension = Extension.NEXT_POWER_OF_TWO
    releases: bool = False

    def __attrs_post_init__(self) -> None:
        if min(self.region, self.max_region, self.max_dead_bytes) < 1:
            raise ProblemError(f"{self.name} needs a region, a largest one and dead bytes above 0")

    def run(self, events: Events, capacity: int) -> Simulated:
        """Returns one event after the other, on one pool."""
        return run_blocks(self.name, events, self._demand(events.size), self._rules(), capacity)

    def serve(self, sizes: Column, capacity: int) -> Server:
        """Returns an empty heap for requests of these sizes."""
        return serve_blocks(self._demand(sizes), self._rules(), capacity)

    def _demand(self, sizes: Column) -> Demand:
        size = round_up(sizes, MIN_ALLOCATION_SIZE)
        return Demand(size, np.zeros_like(size), size, np.minimum(size, self.max_dead_bytes))

    def _rules(self) -> Rules:
        return Rules(
            growth=DOUBLING if self.extension is Extension.NEXT_POWER_OF_TWO else IN_SEGMENTS,
            releases=self.releases,
            grain=MIN_ALLOCATION_SIZE,
            region=self.region,
            limit=self.max_region,
        )


BFC_TENSORFLOW = Bfc("bfc_tensorflow", region=2 << 20, releases=True)
"""A GPU with `allow_growth`; without it, the first region is all that the arena may have."""
BFC_ONNXRUNTIME = Bfc("bfc_onnxruntime", region=1 << 20, max_region=1 << 30)
"""The arena of onnxruntime with the defaults of OrtArenaCfg."""
