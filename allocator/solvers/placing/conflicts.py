"""Conflicts of a problem as pairs: chunks with bytes that may share none, from lifetimes or from given conflicts."""

import numpy as np

from allocator.problem import Column, Conflicts, Problem


def count_conflicts(problem: Problem) -> int:
    """Counts the pairs of `conflict_pairs`. O(n log n)."""
    if problem.conflicts is not None:
        return len(problem.conflicts)
    ids, stop = by_begin(problem)
    return int((stop - np.arange(1, len(ids) + 1)).sum())


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


def by_begin(problem: Problem) -> tuple[Column, Column]:
    """Returns the chunks with bytes by their begin, and for each the place of the first that begins when it has ended.

    It meets all that stand between it and that place.
    """
    ids = np.flatnonzero(problem.size > 0)
    ids = ids[np.argsort(problem.begin[ids], kind="stable")]
    return ids, np.searchsorted(problem.begin[ids], problem.end[ids])
