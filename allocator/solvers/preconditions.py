"""What every problem must keep before a solver runs, beyond what `Problem` itself checks."""

import numpy as np

from allocator.check.offsets import check
from allocator.errors import ProblemError
from allocator.parts import part_of
from allocator.problem import FREE, Problem
from allocator.solvers.base import arena_bytes, without_empty


def check_chains(problem: Problem) -> None:
    """Raises ProblemError where conflicts stand between chunks of one chain, which must lie in each other."""
    if problem.conflicts is None or not len(problem.src):
        return
    root = problem.chains.root
    inside = root[problem.conflicts.one] == root[problem.conflicts.other]
    if inside.any():
        pair = int(np.argmax(inside))
        one, other = problem.conflicts.one[pair], problem.conflicts.other[pair]
        raise ProblemError(f"chunks {one} and {other} conflict, but belong to one chain of overwrites")


def check_pinned(problem: Problem) -> None:
    """Raises ProblemError where two pinned chunks, or chunks that overwrite them, overlap."""
    if (problem.pinned == FREE).all():
        return
    chain = problem.chains
    is_in = problem.pinned[chain.root] != FREE
    part = part_of(problem, is_in)
    offset = without_empty(part, chain.offsets(problem.pinned)[is_in])
    fault = check(part, offset, arena_bytes(part, offset))
    if fault is not None:
        names = " and ".join(f"chunk {chunk}" for chunk in np.flatnonzero(is_in)[list(fault.chunks)])
        raise ProblemError(f"pinned {names} (or what overwrites them) need the same bytes at the same time")
