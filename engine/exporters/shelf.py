"""Addresses for chunks that have none: first fit, so that a picture by address can be drawn of reference counting."""

from attrs import define, field
from sortedcontainers import SortedDict


@define(eq=False)
class Shelf:
    """Takes the lowest gap that is large enough (Knuth, The Art of Computer Programming, volume 1, section 2.5).

    `gaps` are bytes by address, no two of them side by side; above `top` all is free.
    """

    top: int = 0
    gaps: SortedDict[int, int] = field(factory=SortedDict)
    taken: dict[int, tuple[int, int]] = field(factory=dict)

    def put(self, chunk: int, size: int) -> int:
        """The address of a chunk that comes. What has no bytes lies at the top, and takes nothing."""
        if not size:
            return self.top
        at = next((at for at, room in self.gaps.items() if room >= size), self.top)
        room = self.gaps.pop(at, 0)
        if room > size:
            self.gaps[at + size] = room - size
        self.top = max(self.top, at + size)
        self.taken[chunk] = at, size
        return at

    def free(self, chunk: int) -> None:
        """A chunk goes, if it is there; free bytes that touch become one gap."""
        at, size = self.taken.pop(chunk, (self.top, 0))
        start, end = at, at + size
        here = self.gaps.bisect_left(at)
        if here < len(self.gaps) and self.gaps.keys()[here] == end:
            end += self.gaps.pop(end)
        if here and sum(self.gaps.peekitem(here - 1)) == start:
            start, _ = self.gaps.popitem(here - 1)
        if end < self.top:
            self.gaps[start] = end - start
        else:
            self.top = start
