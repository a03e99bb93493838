"""What each byte of a storage holds, as runs of bytes."""

from array import array
from bisect import bisect_left, bisect_right

import numpy as np
from attrs import define, field

from engine.check.pieces import Pieces, Runs, cut

_FIRST = -(2**62)
"""No byte lies below."""


@define(eq=False)
class ByteMap:
    """The content of each byte, a number: run k begins with byte starts[k], holds[k] is in it. At first all hold one.

    Two arrays, not a tree: an insertion moves all runs behind it, but each step costs little. tools/bench_graphs.py
    times the judge.
    """

    nothing: int
    starts: "array[int]" = field(init=False)
    holds: "array[int]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.starts, self.holds = array("q", (_FIRST,)), array("q", (self.nothing,))

    def write(self, low: int, high: int, value: int) -> None:
        """Sets bytes [low, high) to `value`."""
        if low >= high:
            return
        first, stop = bisect_left(self.starts, low), bisect_right(self.starts, high)
        behind = self.holds[stop - 1]
        self.starts[first:stop] = array("q", (low, high))
        self.holds[first:stop] = array("q", (value, behind))

    def write_all(self, runs: Runs, value: int) -> None:
        """Sets the bytes of all runs to `value`."""
        if not runs.size:
            return
        first, stop = bisect_left(self.starts, runs[0, 0]), bisect_right(self.starts, runs[1, -1])
        part = slice(first - 1, stop)
        starts, holds = _written_over(np.array(self.starts[part]), np.array(self.holds[part]), runs, value)
        self.starts[part] = array("q", starts.tobytes())
        self.holds[part] = array("q", holds.tobytes())

    def at(self, byte: int) -> int:
        """Returns the content of a byte."""
        return self.holds[bisect_right(self.starts, byte) - 1]

    def pieces(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Returns the runs that share a byte with [low, high), cut to it, in order: first byte, end, what they hold."""
        if low >= high:
            return []
        first, stop = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        inner = self.starts[first + 1 : stop]
        return list(zip([low, *inner], [*inner, high], self.holds[first:stop], strict=True))

    def pieces_in(self, runs: Runs) -> Pieces:
        """Returns the same for all runs, none of them empty."""
        if not runs.size:
            return np.empty((3, 0), np.int64)
        first, stop = bisect_right(self.starts, runs[0, 0]) - 1, bisect_left(self.starts, runs[1, -1])
        starts, holds = np.array(self.starts[first:stop]), np.array(self.holds[first:stop])
        return cut(np.array([starts, np.append(starts[1:], runs[1, -1]), holds]), runs)

    def stranger(self, low: int, high: int, value: int) -> tuple[int, int] | tuple[()]:
        """Returns the first byte of [low, high) that does not hold `value`, and what it holds; () if all do."""
        if low >= high:
            return ()
        first, stop = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        for run in range(first, stop):
            if self.holds[run] != value:
                return max(low, self.starts[run]), self.holds[run]
        return ()


def _written_over(starts: Runs, holds: Runs, runs: Runs, value: int) -> tuple[Runs, Runs]:
    """Returns a part of a map, from in front of the runs to behind them, with all of them written over."""
    lows, highs = runs
    behind = holds[np.searchsorted(starts, highs, "right") - 1]
    run = np.searchsorted(lows, starts, "right") - 1  # the last run that begins at or in front of each start
    kept = (run < 0) | (starts > highs[run])
    ends = np.append(highs[:-1] != lows[1:], True)
    merged = np.concatenate((starts[kept], lows, highs[ends]))
    order = np.argsort(merged)
    return merged[order], np.concatenate((holds[kept], np.full(len(lows), value), behind[ends]))[order]
