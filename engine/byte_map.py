"""Which value each byte of a storage holds, as runs of bytes."""

from attrs import define, field
from sortedcontainers import SortedDict


@define(eq=False)
class ByteMap:
    """Which value each byte of one storage holds: start of a run -> (end of it, value). Runs do not overlap."""

    runs: "SortedDict[int, tuple[int, int]]" = field(factory=SortedDict)

    def write(self, low: int, high: int, value: int) -> None:
        """Bytes [low, high) hold `value` from now on."""
        if low == high:
            return
        for start, (end, old) in self.meeting(low, high):
            del self.runs[start]
            if start < low:
                self.runs[start] = (low, old)
            if end > high:
                self.runs[high] = (end, old)
        self.runs[low] = (high, value)

    def meeting(self, low: int, high: int) -> list[tuple[int, tuple[int, int]]]:
        """The runs that share a byte with [low, high), in order."""
        first = max(self.runs.bisect_right(low) - 1, 0)
        stop = self.runs.bisect_left(high)
        return [(s, self.runs[s]) for s in self.runs.islice(first, stop) if self.runs[s][0] > low]

    def stranger(self, low: int, high: int, value: int) -> tuple[int, int] | tuple[()]:
        """The first byte of [low, high) that does not hold `value`, and what it holds (-1: nothing); () if all do."""
        for start, (end, held) in self.meeting(low, high):
            if start > low:
                return low, -1
            if held != value:
                return low, held
            low = end
        return (low, -1) if low < high else ()
