"""Orders in which chains are placed. Ids decide only between chains that are equal."""

import numpy as np

from allocator.problem import Column, Problem
from allocator.solvers.placing.canonical import chain_hashes


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
