"""The part of a problem that is decided before any solver runs: the chains whose roots are pinned."""

import numpy as np
from attrs import frozen

from allocator.parts import part_of
from allocator.problem import FREE, Column, Problem
from allocator.solvers.base import without_empty


@frozen(eq=False)
class PinnedPart:
    """Chunk i of `problem` is chunk ids[i] of the whole, and lies at offset[i]."""

    problem: Problem
    ids: Column
    offset: Column


def pinned_part(problem: Problem) -> PinnedPart:
    """Returns the pinned roots and all chunks that overwrite them, as a problem of their own."""
    chain = problem.chains
    is_in = problem.pinned[chain.root] != FREE
    part = part_of(problem, is_in)
    return PinnedPart(part, np.flatnonzero(is_in), without_empty(part, chain.offsets(problem.pinned)[is_in]))
