"""Operator breadths: how much is alive in each tick."""

import numpy as np
from attrs import frozen

from allocator.problem import Column, Problem, column


@frozen(eq=False)
class Breadths:
    """Bytes alive: value[k] holds in the ticks [tick[k], tick[k + 1]); the last one is 0 and holds for ever."""

    tick: Column
    value: Column

    def ranks(self, begin: Column, end: Column) -> Column:
        """Returns when each lifetime is first reached in a sweep over ticks, broadest first (ties: earliest).

        Lifetimes begin and end in ticks of `tick`. O(n log n).
        """
        visit = np.empty(len(self.tick), np.int64)
        visit[np.argsort(-self.value, kind="stable")] = np.arange(len(self.tick))
        return _least(visit, np.searchsorted(self.tick, begin), np.searchsorted(self.tick, end))


def breadths(problem: Problem) -> Breadths:
    """Returns the operator breadths, one for each run of ticks in which nothing begins or ends."""
    return breadths_of(first_tick(problem), problem.end, problem.size)


def first_tick(problem: Problem) -> Column:
    """Returns the begin of each chunk; of an overwriter, whose bytes are counted already, one tick later."""
    first = problem.begin.copy()
    first[problem.src] += 1
    return first


def breadths_of(begin: Column, end: Column, weight: Column) -> Breadths:
    """Returns the sum of weights alive in each tick. O(n) where ticks are about as many as chunks, else O(n log n)."""
    horizon = int(end.max(initial=0))
    if horizon > 8 * len(end) + 1_000:
        tick, event = np.unique(np.concatenate((begin, end)), return_inverse=True)
        change = np.zeros(len(tick), np.int64)
        np.add.at(change, event, np.concatenate((weight, -weight)))
        return Breadths(tick, np.cumsum(change))
    change, is_event = np.zeros(horizon + 1, np.int64), np.zeros(horizon + 1, bool)
    np.add.at(change, begin, weight)
    np.subtract.at(change, end, weight)
    is_event[begin] = is_event[end] = True
    tick = np.flatnonzero(is_event)
    return Breadths(tick, np.cumsum(change)[tick])


def _least(values: Column, low: Column, high: Column) -> Column:
    """Returns the least of values[low:high] for many ranges, each the union of two whose length is a power of two."""
    least = np.empty(len(low), np.int64)
    level = np.frexp((high - low).astype(float))[1] - 1
    for k in range(int(level.max(initial=-1)) + 1):
        rows = level == k
        least[rows] = np.minimum(values[low[rows]], values[high[rows] - 2**k])
        values = np.minimum(values[: -(2**k)], values[2**k :])
    return column(least)
