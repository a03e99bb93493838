"""Dynamic allocators to compare plans with, and the one door to them: `simulate`.

Each is a model that serves the same events, knowing nothing of those to come; see docs/heaps.md for their sources.
"""

from collections.abc import Mapping
from types import MappingProxyType

from allocator.errors import UnknownHeapError
from allocator.heaps.bfc import BFC_ONNXRUNTIME, BFC_TENSORFLOW
from allocator.heaps.buddy import Buddy
from allocator.heaps.events import Events
from allocator.heaps.growing import BEST_FIT, FIRST_FIT
from allocator.heaps.pytorch import PyTorch
from allocator.heaps.refcount import Refcount
from allocator.heaps.simulated import Heap, Simulated
from allocator.problem import NO_CAPACITY

HEAPS: Mapping[str, Heap] = MappingProxyType(
    {h.name: h for h in (Refcount(), FIRST_FIT, BEST_FIT, Buddy(), PyTorch(), BFC_TENSORFLOW, BFC_ONNXRUNTIME)}
)
"""Heap by name, with its default options, in the order in which they are listed."""


def heap_named(name: str) -> Heap:
    """Returns a heap. Raises UnknownHeapError."""
    if name not in HEAPS:
        raise UnknownHeapError(f"no heap {name!r}; there are {', '.join(HEAPS)}")
    return HEAPS[name]


def simulate(heap: str | Heap, events: Events, capacity: int = NO_CAPACITY) -> Simulated:
    """Runs events on a heap: one of HEAPS by name, or a model with options of your own.

    Raises UnknownHeapError, and OutOfMemoryError where it would have to reserve more than `capacity` bytes.
    """
    return (heap_named(heap) if isinstance(heap, str) else heap).run(events, capacity)
