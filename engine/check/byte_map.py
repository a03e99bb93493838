"""What each byte of a storage holds, as runs of bytes."""

from typing import Generic, TypeVar

from attrs import define, field
from sortedcontainers import SortedDict

T = TypeVar("T")
_FIRST = -(2**62)
"""No byte lies below."""


@define(eq=False)
class ByteMap(Generic[T]):
    """What each byte holds: start of a run -> what it holds, up to the next start. At first all hold `nothing`."""

    nothing: T
    runs: "SortedDict[int, T]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.runs = SortedDict({_FIRST: self.nothing})

    def write(self, low: int, high: int, value: T) -> None:
        """Bytes [low, high) hold `value` from now on."""
        if low >= high:
            return
        runs = self.runs
        if high not in runs:
            runs[high] = runs.peekitem(runs.bisect_left(high) - 1)[1]
        for start in list(runs.irange(low, high, (False, False))):
            del runs[start]
        runs[low] = value

    def at(self, byte: int) -> T:
        """What a byte holds."""
        held: T = self.runs.peekitem(self.runs.bisect_right(byte) - 1)[1]
        return held

    def pieces(self, low: int, high: int) -> list[tuple[int, int, T]]:
        """The runs that share a byte with [low, high), cut to it, in order: first byte, end, what they hold."""
        if low >= high:
            return []
        runs = self.runs
        first, stop = runs.bisect_right(low) - 1, runs.bisect_left(high)
        found = list(runs.islice(first, stop))
        starts = [low, *found[1:]]
        return [(s, e, runs[f]) for s, e, f in zip(starts, [*starts[1:], high], found, strict=True)]

    def stranger(self, low: int, high: int, value: T) -> tuple[int, T] | tuple[()]:
        """The first byte of [low, high) that does not hold `value`, and what it holds; () if all do."""
        for start, _, held in self.pieces(low, high):
            if held != value:
                return start, held
        return ()
