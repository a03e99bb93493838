"""Some chunks of a problem as a problem of their own."""

import numpy as np
import numpy.typing as npt

from allocator.problem import Conflicts, Problem


def part_of(problem: Problem, is_in: npt.NDArray[np.bool_]) -> Problem:
    """Returns the chunks of a mask as a problem, in their order. Chains must be whole, or they are cut."""
    new_id = np.cumsum(is_in) - 1
    kept = is_in[problem.src] & is_in[problem.dest]
    conflicts = problem.conflicts
    if conflicts is not None:
        both = is_in[conflicts.one] & is_in[conflicts.other]
        conflicts = Conflicts(new_id[conflicts.one[both]], new_id[conflicts.other[both]])
    return Problem(
        begin=problem.begin[is_in],
        end=problem.end[is_in],
        size=problem.size[is_in],
        alignment=problem.alignment[is_in],
        pinned=problem.pinned[is_in],
        src=new_id[problem.src[kept]],
        dest=new_id[problem.dest[kept]],
        overwrite_offset=problem.overwrite_offset[kept],
        conflicts=conflicts,
    )
