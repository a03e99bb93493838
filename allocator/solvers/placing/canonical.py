"""Chains told apart by what they are, not by the ids of their chunks."""

import numpy as np
import numpy.typing as npt

from allocator.derive.chains import Chains
from allocator.problem import Column, Conflicts, Problem

Marks = npt.NDArray[np.uint64]
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def chain_marks(problem: Problem, found: Chains) -> Marks:
    """A number for each root that only an equal chain has (as good as surely): the sum of hashes over its chunks.

    Where conflicts stand in place of lifetimes, whom its chunks meet is a part of what a chain is.
    """
    mark = np.zeros(len(problem), np.uint64)
    for values in (problem.begin, problem.end, problem.size, found.offset):
        mark = _mixed(mark, values.view(np.uint64))
    if problem.conflicts is not None:
        mark = _refined(_mixed(mark, problem.alignment.view(np.uint64)), problem.conflicts, found.root)
    return _sums(mark, found.root)


def _refined(mark: Marks, conflicts: Conflicts, root: Column) -> Marks:
    """Hashes in what each chunk meets, and the rest of its chain, as long as that tells more of them apart.

    (Colour refinement, Weisfeiler and Leman 1968.)
    """
    kinds, more = 0, len(np.unique(mark))
    while kinds < more:
        near = np.zeros(len(mark), np.uint64)
        np.add.at(near, conflicts.one, mark[conflicts.other])
        np.add.at(near, conflicts.other, mark[conflicts.one])
        mark = _mixed(_mixed(mark, near), _sums(mark, root)[root])
        kinds, more = more, len(np.unique(mark))
    return mark


def _sums(mark: Marks, root: Column) -> Marks:
    total = np.zeros(len(mark), np.uint64)
    np.add.at(total, root, mark)
    return total


def _mixed(mark: Marks, values: Marks) -> Marks:
    """Multiplicative hashing (Knuth)."""
    made = (mark + values) * _FACTOR
    return made ^ (made >> np.uint64(29))
