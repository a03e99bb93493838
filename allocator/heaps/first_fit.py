"""First fit: the lowest free block that is large enough."""

from allocator.heaps.growing import Growing

FIRST_FIT = Growing("first_fit", is_first=True)
