"""What every heap is: a model of an allocator that serves one event after the other and knows nothing of the next."""

from typing import Protocol

from allocator.heaps.events import Events
from allocator.heaps.simulated import Simulated
from allocator.problem import Column


class Heap(Protocol):
    """One model; its options are its fields."""

    @property
    def name(self) -> str:
        """Returns the name under which a caller asks for it."""

    def run(self, events: Events, capacity: int, /) -> Simulated:
        """Serves all events. Raises OutOfMemoryError where it would have to reserve more than `capacity` bytes."""


def round_up(size: Column, step: int) -> Column:
    """Returns the sizes as multiples of `step`."""
    return -(-size // step) * step
