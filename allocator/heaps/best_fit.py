"""Best fit: the smallest free block that is large enough, the lowest of those."""

from allocator.heaps.growing import Growing

BEST_FIT = Growing("best_fit", is_first=False)
