"""Greedy by size improved for shared objects (Pisarchyk and Lee 2020; TensorFlow Lite)."""

import numpy as np

from allocator.kernels.mode import Runner
from allocator.kernels.shared_objects import share_by_gap
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.positional_maximums import positional_maximums
from allocator.solvers.shared import SharedObjectsSolver, Tenants, objects_taken, records


def _share(found: Tenants) -> Column:
    """In stages that the positional maximums cut, whoever leaves an object idle for least ticks takes that object.

    A unit's stage is the last maximum that is not below its size (TensorFlow Lite's reading; the paper has stages of
    their own for units as large as a maximum). Ties: the largest unit, the first to begin, the oldest object.
    """
    maximums = positional_maximums(found.units)
    stage = np.searchsorted(-maximums, -found.units.size, side="right")
    run = Runner.of(len(found))
    units, objects, lives = records(found, run)
    order, stages = run.numbers(column(np.lexsort((-found.units.size, stage))), column(stage))
    waiting, gap = run.zeros(len(found), 4 * len(found))
    run.kernel(share_by_gap)(units, objects, lives, order, stages, waiting, gap)
    return objects_taken(units)


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=20_000)
SHARED_BY_SIZE_IMPROVED = SharedObjectsSolver("shared_by_size_improved", _share, TRAITS)
