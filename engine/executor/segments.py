"""The bytes of an arena that grows: segments that never move while something in them is alive."""

from typing import Any

import numpy as np
from attrs import define, field, frozen

from engine.room import SEAM
from engine.views import aligned_empty, view_array
from ops.layout import Layout
from ops.spec import Array


@frozen(eq=False)
class _Segment:
    low: int
    high: int
    bytes: Array


@define(eq=False)
class Segments:
    """Addresses [0, top) in one block or several. `moves` counts how often addresses got other bytes."""

    alignment: int
    segments: list[_Segment] = field(factory=list)
    moves: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(s.bytes.nbytes for s in self.segments)

    def start(self, top: int) -> None:
        """Nothing is alive: all becomes one block, of what was needed at most so far and of `top` bytes at least."""
        needed = max(top, *(s.high for s in self.segments), 0)
        if len(self.segments) != 1 or self.segments[0].high < needed:
            self.segments.clear()
            self.segments.append(self._segment(0, needed))
            self.moves += 1

    def grow(self, old_top: int, top: int) -> None:
        """Addresses up to `top` get bytes; what lies below `old_top` stays. Raises MemoryError."""
        if self.segments[-1].high < top:
            self.segments.append(self._segment(old_top + SEAM, top))

    def view(self, layout: Layout, dtype: np.dtype[Any]) -> Array:
        """The tensor at a place."""
        low, high = layout.extent
        if low == high:
            return np.empty(layout.shape, dtype)
        for segment in reversed(self.segments):
            if segment.low <= low:
                return view_array(segment.bytes, layout.starting_at(low - segment.low), dtype)
        raise IndexError(f"no segment has the bytes [{low}, {high})")

    def holds(self, array: Array) -> bool:
        """Whether an array lies in the arena."""
        return any(np.may_share_memory(array, s.bytes) for s in self.segments)

    def _segment(self, low: int, high: int) -> _Segment:
        return _Segment(low, high, aligned_empty(high - low, max(self.alignment, SEAM)))
