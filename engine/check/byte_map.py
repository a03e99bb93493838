"""What each byte of a storage holds, as runs of bytes."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar

from attrs import define, field

T = TypeVar("T")
_FIRST = -(2**62)
"""No byte lies below."""


@define(eq=False)
class ByteMap(Generic[T]):
    """The content of each byte: run k begins with byte starts[k], holds[k] is in it. At first all hold `nothing`.

    Two lists, not a tree: an insertion moves all runs behind it, but each step costs little. tools/bench_graphs.py
    times the judge.
    """

    nothing: T
    starts: list[int] = field(init=False)
    holds: list[T] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.starts, self.holds = [_FIRST], [self.nothing]

    def write(self, low: int, high: int, value: T) -> None:
        """Sets bytes [low, high) to `value`."""
        if low >= high:
            return
        first, stop = bisect_left(self.starts, low), bisect_right(self.starts, high)
        behind = self.holds[stop - 1]
        self.starts[first:stop] = (low, high)
        self.holds[first:stop] = (value, behind)

    def at(self, byte: int) -> T:
        """Returns the content of a byte."""
        return self.holds[bisect_right(self.starts, byte) - 1]

    def pieces(self, low: int, high: int) -> list[tuple[int, int, T]]:
        """Returns the runs that share a byte with [low, high), cut to it, in order: first byte, end, what they hold."""
        if low >= high:
            return []
        first, stop = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        inner = self.starts[first + 1 : stop]
        return list(zip([low, *inner], [*inner, high], self.holds[first:stop], strict=True))

    def pieces_in(self, runs: Sequence[tuple[int, int]]) -> list[tuple[int, int, T]]:
        """Returns the same for runs, in order and none of them empty: one walk from the first to the last."""
        starts, holds, pieces = self.starts, self.holds, list[tuple[int, int, T]]()
        at, last = bisect_right(starts, runs[0][0]) - 1 if runs else 0, len(starts) - 1
        for low, high in runs:
            while at < last and starts[at + 1] <= low:
                at += 1
            start = low
            while at < last and starts[at + 1] < high:
                pieces.append((start, starts[at + 1], holds[at]))
                at += 1
                start = starts[at]
            pieces.append((start, high, holds[at]))
        return pieces

    def stranger(self, low: int, high: int, value: T) -> tuple[int, T] | tuple[()]:
        """Returns the first byte of [low, high) that does not hold `value`, and what it holds; () if all do."""
        if low >= high:
            return ()
        first, stop = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        for run in range(first, stop):
            if self.holds[run] != value:
                return max(low, self.starts[run]), self.holds[run]
        return ()
