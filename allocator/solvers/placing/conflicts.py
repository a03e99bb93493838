"""Conflicts of a problem as pairs: chunks with bytes that may share none, from lifetimes or from given conflicts."""

import numpy as np

from allocator.problem import Column, Conflicts, Problem


def count_conflicts(problem: Problem) -> int:
    """Counts the pairs of `conflict_pairs`. O(n) where ticks are about as many as chunks, else O(n log n)."""
    if problem.conflicts is not None:
        return len(problem.conflicts)
    used = problem.size > 0
    begin, end = problem.begin[used], problem.end[used]
    return int(_begun_before(begin, end).sum()) - len(begin) * (len(begin) + 1) // 2


def conflict_pairs(problem: Problem) -> Conflicts:
    """Returns all pairs of chunks with bytes that may share none. Memory grows with `count_conflicts`."""
    if problem.conflicts is not None:
        one, other = problem.conflicts.one, problem.conflicts.other
        both = (problem.size[one] > 0) & (problem.size[other] > 0)
        return Conflicts(one[both], other[both])
    ids, stop = by_begin(problem)
    first = np.arange(1, len(ids) + 1)
    counts = stop - first
    one = np.repeat(np.arange(len(ids)), counts)
    other = np.arange(len(one)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    return Conflicts(ids[one], ids[other])


def _begun_before(begin: Column, ticks: Column) -> Column:
    """Returns how many lifetimes have begun before each of these ticks."""
    horizon = int(ticks.max(initial=0))
    if horizon > 8 * len(begin) + 1_000:
        return np.searchsorted(np.sort(begin), ticks)
    return np.cumsum(np.bincount(begin + 1, minlength=horizon + 1))[ticks]


def by_begin(problem: Problem) -> tuple[Column, Column]:
    """Returns the chunks with bytes by their begin, and for each the place of the first that begins when it has ended.

    It meets all that stand between it and that place.
    """
    ids = np.flatnonzero(problem.size > 0)
    ids = ids[np.argsort(problem.begin[ids], kind="stable")]
    return ids, np.searchsorted(problem.begin[ids], problem.end[ids])
