"""Hashes of chains by what they are, not by the ids of their chunks."""

import numpy as np
import numpy.typing as npt

from allocator.problem import Column, Conflicts, Problem

Hashes = npt.NDArray[np.uint64]
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def chain_hashes(problem: Problem) -> Hashes:
    """Returns a number for each root that only an equal chain has (as good as surely): a sum of hashes over its chunks.

    Where conflicts stand in place of lifetimes, whom its chunks meet is a part of what a chain is.
    """
    digest = np.zeros(len(problem), np.uint64)
    for values in (problem.begin, problem.end, problem.size, problem.chains.offset):
        digest = _mixed(digest, values.view(np.uint64))
    if problem.conflicts is not None:
        digest = _refined(_mixed(digest, problem.alignment.view(np.uint64)), problem.conflicts, problem.chains.root)
    return _sums(digest, problem.chains.root)


def _refined(digest: Hashes, conflicts: Conflicts, root: Column) -> Hashes:
    """Refines hashes by what each chunk conflicts with, as long as that tells more chunks apart.

    (Colour refinement, Weisfeiler and Leman 1968.)
    """
    kinds, more = 0, len(np.unique(digest))
    while kinds < more:
        near = np.zeros(len(digest), np.uint64)
        np.add.at(near, conflicts.one, digest[conflicts.other])
        np.add.at(near, conflicts.other, digest[conflicts.one])
        digest = _mixed(_mixed(digest, near), _sums(digest, root)[root])
        kinds, more = more, len(np.unique(digest))
    return digest


def _sums(digest: Hashes, root: Column) -> Hashes:
    total = np.zeros(len(digest), np.uint64)
    np.add.at(total, root, digest)
    return total


def _mixed(digest: Hashes, values: Hashes) -> Hashes:
    """Mixes values into hashes by multiplicative hashing (Knuth)."""
    product = (digest + values) * _FACTOR
    return product ^ (product >> np.uint64(29))
