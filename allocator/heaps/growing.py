"""One heap that grows at its end, like a program's heap with `sbrk`: first fit and best fit.

Knuth, The Art of Computer Programming, volume 1, section 2.5, algorithm A (where the free block that is taken is split
whatever is left of it) and algorithm B (free neighbours are merged at once). It never shrinks.
"""

import numpy as np
from attrs import frozen

from allocator.errors import ProblemError
from allocator.heaps.blocks import Demand, Rules, round_up, run_blocks
from allocator.heaps.events import Events
from allocator.heaps.served_blocks import serve_blocks
from allocator.heaps.server import Server
from allocator.heaps.simulated import Simulated
from allocator.kernels.heap import AT_END
from allocator.problem import Column


@frozen
class Growing:
    """Takes the lowest free block that is large enough if `is_first`, else the smallest (of equal ones the lowest).

    Sizes are rounded up to `rounding` bytes. Where no block is large enough the heap grows by what misses: the last
    block, if it is free, is made larger.
    """

    name: str
    is_first: bool
    rounding: int = 64

    def __attrs_post_init__(self) -> None:
        if self.rounding < 1:
            raise ProblemError(f"sizes cannot be rounded up to {self.rounding} bytes")

    def run(self, events: Events, capacity: int) -> Simulated:
        """Returns one event after the other, on one pool."""
        return run_blocks(self.name, events, self._demand(events.size), self._rules(), capacity)

    def serve(self, sizes: Column, capacity: int) -> Server:
        """Returns an empty heap for requests of these sizes."""
        return serve_blocks(self._demand(sizes), self._rules(), capacity)

    def _demand(self, sizes: Column) -> Demand:
        size = round_up(sizes, self.rounding)
        return Demand(size, np.zeros_like(size), np.zeros_like(size), np.full_like(size, self.rounding))

    def _rules(self) -> Rules:
        return Rules(by_address=self.is_first, growth=AT_END)


FIRST_FIT = Growing("first_fit", is_first=True)
BEST_FIT = Growing("best_fit", is_first=False)
