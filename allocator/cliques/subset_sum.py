"""Which totals some of a list of weights can have. A set of totals is a whole number: bit t stands for total t."""

from collections import Counter
from collections.abc import Iterable
from math import gcd

ENOUGH = 2**27
"""The most bits that are shifted for an exact answer. More bits make bounds tighter and take longer."""


def largest_sum(weights: Iterable[int], room: int, work: int = ENOUGH) -> int:
    """Returns the largest total that is not above `room`. Above `work` bits to shift, returns an upper bound of it."""
    counts = Counter(w for w in weights if 0 < w <= room)
    total = sum(w * k for w, k in counts.items())
    if total <= room:
        return total
    step = gcd(*counts)
    length = room // step
    parts = [w // step * k for w, count in counts.items() for k in _powers(count)]
    if length * len(parts) > work:
        return length * step
    mask, sums = (1 << length + 1) - 1, 1
    for part in parts:
        sums |= sums << part & mask
    return (sums.bit_length() - 1) * step


def smallest_sum(weights: Iterable[int], least: int, work: int = ENOUGH) -> int:
    """Returns the smallest total not below `least`, or a lower bound of it. All weights together reach `least`."""
    positive = [w for w in weights if w > 0]
    total = sum(positive)
    return total - largest_sum(positive, total - max(least, 0), work)  # as much as possible is left out


def _powers(count: int) -> list[int]:
    """Returns 1, 2, 4 ... and a rest, whose subsets have exactly the totals 0 to `count`."""
    powers, size = [], 1
    while size <= count:
        powers.append(size)
        count -= size
        size *= 2
    return [*powers, count] if count else powers
