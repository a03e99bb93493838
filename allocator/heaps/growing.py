"""One heap that grows at its end, like a program's heap with `sbrk`: first fit and best fit.

Knuth, The Art of Computer Programming, volume 1, section 2.5, algorithm A (where the free block that is taken is split
whatever is left of it) and algorithm B (free neighbours are merged at once). It never shrinks.
"""

import numpy as np
from attrs import frozen

from allocator.errors import ProblemError
from allocator.heaps.blocks import Demand, Rules, round_up, run_blocks
from allocator.heaps.events import Events
from allocator.heaps.simulated import Simulated
from allocator.kernels.heap import AT_END


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
        size = round_up(events.size, self.rounding)
        demand = Demand(size, np.zeros_like(size), np.zeros_like(size), np.full_like(size, self.rounding))
        rules = Rules(by_address=self.is_first, growth=AT_END)
        return run_blocks(self.name, events, demand, rules, capacity)


FIRST_FIT = Growing("first_fit", is_first=True)
BEST_FIT = Growing("best_fit", is_first=False)
