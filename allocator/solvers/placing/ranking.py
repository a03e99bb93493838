"""Orders in which chains are placed, and hashes of chains. Ids decide only between chains that are equal."""

import numpy as np
import numpy.typing as npt

from allocator.problem import Column, Conflicts, Problem

Hashes = npt.NDArray[np.uint64]
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def ranked(problem: Problem, ids: Column, *keys: Column) -> Column:
    """Sorts roots by these keys (columns beside `ids`, the first one decides), then by their chains.

    Ties: first to begin, first to end, least aligned.
    """
    _, end = chain_lifetimes(problem)
    ties = [problem.begin[ids], end[ids], problem.alignment[ids]]
    if len(problem.src) or problem.conflicts is not None:
        ties.append(chain_hashes(problem)[ids].view(np.int64))
    return ids[np.lexsort((ids, *reversed((*keys, *ties))))]


def chain_lifetimes(problem: Problem) -> tuple[Column, Column]:
    """Returns the begin and end of the whole chain of each root; chunks of no bytes do not count."""
    end = problem.end.copy()
    used = problem.size > 0
    if len(problem.src):
        np.maximum.at(end, problem.chains.root[used], problem.end[used])
    return problem.begin, end


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
