"""Ticks by operator breadth, and when each life is met on the way through them."""

import numpy as np

from allocator.problem import Column, column


def breadth_ranks(begin: Column, end: Column, tick: Column, breadth: Column) -> Column:
    """Returns when each lifetime is first reached in a sweep over ticks, broadest first (ties: earliest). O(n log n).

    `breadth[k]` holds in the ticks from tick[k] to tick[k + 1]; lives begin and end in such ticks.
    """
    visit = np.empty(len(tick), np.int64)
    visit[np.argsort(-breadth, kind="stable")] = np.arange(len(tick))
    return _least(visit, np.searchsorted(tick, begin), np.searchsorted(tick, end))


def _least(values: Column, low: Column, high: Column) -> Column:
    """Returns the least of values[low:high] for many ranges, each the union of two whose length is a power of two."""
    least = np.empty(len(low), np.int64)
    level = np.frexp((high - low).astype(float))[1] - 1
    for k in range(int(level.max(initial=-1)) + 1):
        rows = level == k
        least[rows] = np.minimum(values[low[rows]], values[high[rows] - 2**k])
        values = np.minimum(values[: -(2**k)], values[2**k :])
    return column(least)
