"""The chunks of a problem by time: by id within a tick, or in an order that ids do not decide."""

import numpy as np
from attrs import field, frozen

from allocator.kernels.freelist import NO_CHUNK
from allocator.kernels.numbers import Numbers
from allocator.problem import Column, Problem, column
from allocator.solvers.placing.ranking import chain_hashes


@frozen(eq=False)
class Timeline:
    """Row k stands for chunk ids[k]; chunks of no bytes have no row.

    Rows stand by the tick in which they begin; in a tick overwriters come last. `root` is the row of the root of a
    chain, `inner` where the row lies in the root's bytes; `dest` is what it overwrites (or NO_CHUNK), from byte `at`
    on. `freed` names the rows that nothing overwrites, first to end first.
    """

    ids: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    alignment: Column = field(converter=column)
    root: Column = field(converter=column)
    inner: Column = field(converter=column)
    dest: Column = field(converter=column)
    at: Column = field(converter=column)
    freed: Column = field(converter=column)

    def offsets(self, problem: Problem, by_row: Numbers) -> Column:
        """Returns a column of the problem from one of the rows; 0 for the chunks of no bytes."""
        by_chunk = np.zeros(len(problem), np.int64)
        by_chunk[self.ids] = np.array(by_row)
        return by_chunk


def timeline_by_id(problem: Problem) -> Timeline:
    """Sorts the chunks; of those that begin, or end, in one tick the lower id comes first. O(n log n)."""
    ids = np.flatnonzero(problem.size > 0)
    overwrites = problem.chains.root[ids] != ids
    began = ids[np.lexsort((overwrites, problem.begin[ids]))]
    return _timeline(problem, began, ids[np.argsort(problem.end[ids], kind="stable")])


def sorted_timeline(problem: Problem) -> Timeline:
    """Sorts the chunks; of those that begin in one tick the longest-lived come first, then the largest. O(n log n)."""
    began = _in_order(problem)
    return _timeline(problem, began, began[np.argsort(problem.end[began], kind="stable")])


def _timeline(problem: Problem, began: Column, ended: Column) -> Timeline:
    """Returns the rows of chunks that begin in one order and end in another."""
    row = np.full(len(problem) + 1, NO_CHUNK)
    row[began] = np.arange(len(began))
    dest, at = np.full(len(problem), NO_CHUNK), np.zeros(len(problem), np.int64)
    dest[problem.src], at[problem.src] = row[problem.dest], problem.overwrite_offset
    is_freed = np.ones(len(problem), bool)
    is_freed[problem.dest[problem.size[problem.src] > 0]] = False
    return Timeline(
        ids=began,
        begin=_picked(problem.begin, began),
        end=_picked(problem.end, began),
        size=_picked(problem.size, began),
        alignment=_picked(problem.alignment, began),
        root=_picked(row, problem.chains.root[began]),
        inner=_picked(problem.chains.offset, began),
        dest=_picked(dest, began),
        at=_picked(at, began),
        freed=_picked(row, ended[is_freed[ended]]),
    )


def _picked(values: Column, rows: Column) -> Column:
    """Returns the values at these rows as a column that nobody need copy."""
    chosen = values[rows]
    chosen.flags.writeable = False
    return chosen


def _in_order(problem: Problem) -> Column:
    """Returns the ids of the chunks that have bytes, in an order that ids decide only among equal ones."""
    ids = np.flatnonzero(problem.size > 0)
    begin = problem.begin[ids]
    if not len(problem.src):
        return _sorted_ties(problem, ids[np.argsort(begin, kind="stable")])
    overwrites = problem.chains.root[ids] != ids
    return ids[np.lexsort((_rank(problem)[ids], -problem.size[ids], -problem.end[ids], overwrites, begin))]


def _sorted_ties(problem: Problem, began: Column) -> Column:
    """Returns chunks that stand by their begin with those of one tick in order; only these are sorted again."""
    as_next, is_tied = np.diff(problem.begin[began]) == 0, np.zeros(len(began), bool)
    is_tied[:-1] |= as_next
    is_tied[1:] |= as_next
    tied = began[is_tied]
    keys = problem.alignment[tied], -problem.size[tied], -problem.end[tied], problem.begin[tied]
    began[is_tied] = tied[np.lexsort(keys)]
    return began


def _rank(problem: Problem) -> Column:
    """Returns a number for each chunk that orders chains by their roots; equal chains differ by id alone.

    What a chain does later decides where its root alone does not; the sum of hashes over its members stands for it.
    """
    rank = np.empty(len(problem), np.int64)
    total = chain_hashes(problem)
    rank[np.lexsort((total, problem.alignment, -problem.size, -problem.end, problem.begin))] = np.arange(len(problem))
    return rank[problem.chains.root]
