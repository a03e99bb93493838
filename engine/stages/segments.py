"""The bytes of an arena that grows while something in it is alive, which therefore never moves.

Where the system gives addresses for as much as the machine has (mmap: pages come as they are touched), they are
reserved once, and the arena grows in place. Elsewhere it grows by segments.
"""

import mmap
import os
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from engine.planning.reserved import SEAM
from engine.system.arrays import address, aligned_empty, view_array
from ops.tensor.layout import Layout
from ops.tensor.spec import Array


class Memory(Protocol):
    """Bytes for the addresses [0, top). `moves` counts how often addresses got other bytes."""

    @property
    def moves(self) -> int:
        """Views are right as long as this stays."""

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""

    def start(self, top: int) -> None:
        """Nothing is alive: addresses up to `top` get bytes. Raises MemoryError."""

    def grow(self, old_top: int, top: int) -> None:
        """Addresses up to `top` get bytes; what lies below `old_top` stays. Raises MemoryError."""

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """The tensor at a place."""

    def holds(self, array: Array) -> bool:
        """Whether an array lies in it."""


def machine_bytes() -> int:
    """The memory of this machine; 0 where that cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def new_memory(capacity: int, alignment: int) -> "Reserved | Segments":
    """Memory that may grow to `capacity` bytes, and to what the machine has; a capacity of 0 is as much as that."""
    rounded = -(-capacity // SEAM) * SEAM  # as tops are, which a plan within the capacity may reach
    ahead = alignment if alignment > mmap.PAGESIZE else 0  # room for a first address that is so aligned
    limits = [n for n in (rounded and rounded + ahead, machine_bytes()) if n]
    nbytes = min(limits, default=0)
    if hasattr(mmap, "MAP_PRIVATE") and nbytes > ahead:
        unbacked = getattr(mmap, "MAP_NORESERVE", 0)  # Python tells it from 3.13 on
        try:
            pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unbacked)
            found = np.frombuffer(pages, np.uint8)
            return Reserved(found[-address(found) % alignment :])
        except (OSError, OverflowError, ValueError):
            pass  # more than the system gives; segments then
    return Segments(alignment, nbytes if capacity else 0)


@define(eq=False)
class Reserved:
    """One block that never moves; `top` is as far as it was needed."""

    bytes: Array
    top: int = 0
    moves: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that were needed so far; the rest has no pages."""
        return self.top

    def start(self, top: int) -> None:
        """As of any memory."""
        self.grow(0, top)

    def grow(self, _: int, top: int) -> None:
        """As of any memory."""
        if top > len(self.bytes):
            raise MemoryError
        self.top = max(self.top, top)

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """As of any memory."""
        return view_array(self.bytes, layout, dtype)

    def holds(self, array: Array) -> bool:
        """As of any memory."""
        return np.may_share_memory(array, self.bytes)


@frozen(eq=False)
class _Segment:
    low: int
    high: int
    bytes: Array


@define(eq=False)
class Segments:
    """A block of `least` bytes or more, and one more each time that it grows; all become one when nothing is alive."""

    alignment: int
    least: int = 0
    segments: list[_Segment] = field(factory=list)
    moves: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all segments."""
        return sum(s.bytes.nbytes for s in self.segments)

    def start(self, top: int) -> None:
        """All becomes one block, of what was needed at most so far and of `top` bytes at least."""
        needed = max(top, self.least, *(s.high for s in self.segments))
        if len(self.segments) != 1 or self.segments[0].high < needed:
            self.segments.clear()
            self.segments.append(self._segment(0, needed))
            self.moves += 1

    def grow(self, old_top: int, top: int) -> None:
        """A segment above the seam, if that is needed."""
        if self.segments[-1].high < top:
            self.segments.append(self._segment(old_top + SEAM, top))

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """As of any memory."""
        low, high = layout.extent
        if low == high:
            return np.empty(layout.shape, dtype)
        for segment in reversed(self.segments):
            if segment.low <= low:
                return view_array(segment.bytes, layout.starting_at(low - segment.low), dtype)
        raise IndexError(f"no segment has the bytes [{low}, {high})")

    def holds(self, array: Array) -> bool:
        """As of any memory."""
        return any(np.may_share_memory(array, s.bytes) for s in self.segments)

    def _segment(self, low: int, high: int) -> _Segment:
        """Bytes whose addresses are multiples of the alignment where those in the arena are."""
        alignment = max(self.alignment, SEAM)
        ahead = low % alignment
        return _Segment(low, high, aligned_empty(ahead + high - low, alignment)[ahead:])
