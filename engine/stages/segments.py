"""The memory of an arena that grows while tensors in it are alive, so that they must not move.

Where the system gives addresses for all memory of the machine (mmap: pages come when they are touched), they are
reserved once, and the arena grows in place. Elsewhere it grows by segments.
"""

import mmap
import os
import platform
import sys
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from engine.planning.reserved import BOUNDARY_BYTES
from engine.system.arrays import aligned_empty, view_array
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import Array

_USUAL = 0x4000 if sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"} else 0
_UNBACKED = getattr(mmap, "MAP_NORESERVE", _USUAL)  # Python has it since 3.13
"""The flag of addresses for which the system sets no memory aside: else no process could be forked beside them."""


class Memory(Protocol):
    """Bytes for the addresses [0, top)."""

    @property
    def relocations(self) -> int:
        """The number of times that addresses got other bytes; views are valid as long as this number stays the same."""

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated."""

    def start(self, top: int) -> None:
        """Allocates addresses up to `top` while nothing is alive. Raises MemoryError."""

    def has(self, top: int) -> bool:
        """Returns whether addresses up to `top` can be allocated without a relocation of those that are there."""

    def grow(self, old_top: int, top: int) -> None:
        """Allocates addresses up to `top`; bytes below `old_top` stay where they are. Raises MemoryError."""

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """Returns the tensor of that layout."""

    def contains(self, array: Array) -> bool:
        """Returns whether an array lies in this memory."""


def machine_bytes() -> int:
    """Returns the bytes of memory of this machine; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def new_memory(capacity: int, alignment: int) -> "ReservedMemory | Segments":
    """Returns memory that may grow to `capacity` bytes and to the memory of the machine; 0 sets no capacity."""
    rounded = -(-capacity // BOUNDARY_BYTES) * BOUNDARY_BYTES  # tops are rounded in this way too
    ahead = alignment if alignment > mmap.PAGESIZE else 0  # so that the first address can be aligned
    limits = [n for n in (rounded and rounded + ahead, machine_bytes()) if n]
    nbytes = min(limits, default=0)
    if hasattr(mmap, "MAP_PRIVATE") and nbytes > ahead:
        try:
            pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNBACKED)
            reserved = np.frombuffer(pages, np.uint8)
            return ReservedMemory(reserved[-address_of(reserved) % alignment :])
        except (OSError, OverflowError, ValueError):
            pass  # more than the system gives: segments are used instead
    return Segments(alignment, nbytes if capacity else 0)


@define(eq=False)
class ReservedMemory:
    """One block that never moves; `top` is the greatest address that was needed so far."""

    bytes: Array
    top: int = 0
    relocations: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that were needed so far; the rest has no pages."""
        return self.top

    def start(self, top: int) -> None:
        """Allocates addresses up to `top`."""
        self.grow(0, top)

    def has(self, top: int) -> bool:
        """Returns whether they are reserved."""
        return top <= len(self.bytes)

    def grow(self, _: int, top: int) -> None:
        """Allocates addresses up to `top`. Raises MemoryError."""
        if top > len(self.bytes):
            raise MemoryError
        self.top = max(self.top, top)

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """Returns the tensor of that layout."""
        return view_array(self.bytes, layout, dtype)

    def contains(self, array: Array) -> bool:
        """Returns whether an array lies in this memory."""
        return np.may_share_memory(array, self.bytes)


@frozen(eq=False)
class _Segment:
    """Bytes for the addresses [low, high)."""

    low: int
    high: int
    bytes: Array


@define(eq=False)
class Segments:
    """A block of at least `least` bytes, and one more for each growth; `start` makes them one block again."""

    alignment: int
    least: int = 0
    segments: list[_Segment] = field(factory=list)
    relocations: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all segments."""
        return sum(s.bytes.nbytes for s in self.segments)

    def start(self, top: int) -> None:
        """Replaces all segments by one block, as large as was needed so far and at least `top` bytes."""
        needed = max(top, self.least, *(s.high for s in self.segments))
        if len(self.segments) != 1 or self.segments[0].high < needed:
            self.segments.clear()
            self.segments.append(self._segment(0, needed))
            self.relocations += 1

    def has(self, top: int) -> bool:
        """Returns whether one block has them."""
        return len(self.segments) == 1 and top <= self.segments[0].high

    def grow(self, old_top: int, top: int) -> None:
        """Adds a segment above the boundary where one is needed."""
        if self.segments[-1].high < top:
            self.segments.append(self._segment(old_top + BOUNDARY_BYTES, top))

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """Returns the tensor of that layout."""
        low, high = layout.extent
        if low == high:
            return np.empty(layout.shape, dtype)
        for segment in reversed(self.segments):
            if segment.low <= low:
                return view_array(segment.bytes, layout.starting_at(low - segment.low), dtype)
        raise IndexError(f"no segment has the bytes [{low}, {high})")

    def contains(self, array: Array) -> bool:
        """Returns whether an array lies in this memory."""
        return any(np.may_share_memory(array, s.bytes) for s in self.segments)

    def _segment(self, low: int, high: int) -> _Segment:
        """Allocates a segment whose machine addresses are aligned where its arena addresses are."""
        alignment = max(self.alignment, BOUNDARY_BYTES)
        ahead = low % alignment
        return _Segment(low, high, aligned_empty(ahead + high - low, alignment)[ahead:])
