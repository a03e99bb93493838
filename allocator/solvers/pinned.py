"""The part of a problem that is decided before any solver runs: the chains whose roots are pinned."""

import numpy as np
from attrs import frozen

from allocator.chains import chains
from allocator.problem import FREE, Column, Conflicts, Problem
from allocator.solvers.base import without_empty


@frozen(eq=False)
class PinnedPart:
    """Chunk i of `problem` is chunk ids[i] of the whole, and lies at offset[i]."""

    problem: Problem
    ids: Column
    offset: Column


def pinned_part(problem: Problem) -> PinnedPart:
    """The pinned roots and all chunks that overwrite them, as a problem of their own."""
    found = chains(problem)
    is_in = problem.pinned[found.root] != FREE
    ids = np.flatnonzero(is_in)
    new_id = np.cumsum(is_in) - 1
    kept = is_in[problem.src]
    conflicts = problem.conflicts
    if conflicts is not None:
        both = is_in[conflicts.one] & is_in[conflicts.other]
        conflicts = Conflicts(new_id[conflicts.one[both]], new_id[conflicts.other[both]])
    part = Problem(
        begin=problem.begin[ids],
        end=problem.end[ids],
        size=problem.size[ids],
        alignment=problem.alignment[ids],
        pinned=problem.pinned[ids],
        src=new_id[problem.src[kept]],
        dest=new_id[problem.dest[kept]],
        overwrite_offset=problem.overwrite_offset[kept],
        conflicts=conflicts,
    )
    return PinnedPart(part, ids, without_empty(part, found.offsets(problem.pinned)[ids]))
