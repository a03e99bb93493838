"""Greedy by size improved for shared objects (Pisarchyk and Lee 2020; TensorFlow Lite)."""

import numpy as np

from allocator.kernels.mode import KernelMode
from allocator.kernels.shared_objects import share_by_gap
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.positional_maximums import positional_maximums
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, objects_taken, records


def _share(graph: InterferenceGraph) -> Column:
    """Gives objects in stages that the positional maximums cut; the unit that leaves an object idle least goes first.

    A unit's stage is the last maximum that is not below its size (TensorFlow Lite's reading; the paper has stages of
    their own for units as large as a maximum). Ties: the largest unit, the first to begin, the oldest object.
    """
    maximums = positional_maximums(graph.units)
    stage = np.searchsorted(-maximums, -graph.units.size, side="right")
    mode = KernelMode.of(len(graph))
    units, objects, lives = records(graph, mode)
    order, stages = mode.numbers(column(np.lexsort((-graph.units.size, stage))), column(stage))
    waiting, gap = mode.zeros(len(graph), 4 * len(graph))
    mode.kernel(share_by_gap)(units, objects, lives, order, stages, waiting, gap)
    return objects_taken(units)


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=20_000)
SHARED_BY_SIZE_IMPROVED = SharedObjectsSolver("shared_by_size_improved", _share, TRAITS)
