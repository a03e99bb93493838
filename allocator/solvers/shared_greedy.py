"""Greedy strategies for shared objects: each unit, in some order, gets a free object, or a new one.

Pisarchyk and Lee 2020; TensorFlow Lite.
"""

from functools import partial

import numpy as np

from allocator.breadths import breadths_of
from allocator.kernels.mode import KernelMode
from allocator.kernels.shared_objects import AT_NEED, CURSOR, FAR, HIGH, LEFT, NEVER, WHERE_NEARER, share_by_gap
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.positional_maximums import positional_maximums
from allocator.solvers.search.budget import Budget
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, objects_taken, records, share_in_order


def _by_breadth(graph: InterferenceGraph, budget: Budget) -> Column:
    """Gives objects to units by breadth: first those alive where most bytes are; among them the largest.

    Each takes the smallest free object that is large enough, else lets the largest free one grow. Of equally large
    units the first to begin comes first, then the longest-lived.
    """
    begin, end, size = graph.units.begin, graph.units.end, graph.units.size
    order = np.lexsort((-end, begin, -size, breadths_of(begin, end, size).ranks(begin, end)))
    return share_in_order(graph, order, FAR, AT_NEED, budget)


def _by_size(graph: InterferenceGraph, budget: Budget) -> Column:
    """Gives the largest units first (ties: first to begin) the smallest object that is free while they live."""
    return share_in_order(graph, np.argsort(-graph.units.size, kind="stable"), FAR, NEVER, budget)


def _by_size_improved(graph: InterferenceGraph, budget: Budget) -> Column:
    """Gives objects in stages that the positional maximums cut; the unit that leaves an object idle least goes first.

    A unit's stage is the last maximum that is not below its size (TensorFlow Lite's reading; the paper has stages of
    their own for units as large as a maximum). Ties: the largest unit, the first to begin, the oldest object.
    """
    maximums = positional_maximums(graph.units)
    stage = np.searchsorted(-maximums, -graph.units.size, side="right")
    mode = KernelMode.of(len(graph))
    units, objects, lives = records(graph, mode)
    order, stages = mode.numbers(column(np.lexsort((-graph.units.size, stage))), column(stage))
    waiting, gap, cursor = mode.zeros(len(graph), 4 * len(graph), CURSOR)
    go_on = partial(mode.kernel(share_by_gap), units, objects, lives, order, stages, waiting, gap, cursor)
    budget.run(go_on, lambda: cursor[HIGH] == len(graph) and cursor[LEFT] == 0)
    return objects_taken(units)


def _in_order(graph: InterferenceGraph, budget: Budget) -> Column:
    """Gives each unit, as they begin, the free object nearest in size, which grows where it is too small."""
    return share_in_order(graph, np.arange(len(graph)), FAR, WHERE_NEARER, budget)


def _of_equal_size(graph: InterferenceGraph, budget: Budget) -> Column:
    """Gives each unit, as they begin, a free object of its own size."""
    return share_in_order(graph, np.arange(len(graph)), 0, NEVER, budget)


_LIFETIMES_ALONE = Traits(pinned=False, conflicts=False, most_chunks=100_000)
SHARED_BY_BREADTH = SharedObjectsSolver("shared_by_breadth", _by_breadth, _LIFETIMES_ALONE)
"""Greedy by breadth (the paper; TensorFlow Lite)."""
SHARED_BY_SIZE = SharedObjectsSolver("shared_by_size", _by_size)
"""Greedy by size (the paper)."""
SHARED_BY_SIZE_IMPROVED = SharedObjectsSolver(
    "shared_by_size_improved", _by_size_improved, Traits(pinned=False, conflicts=False, most_chunks=20_000)
)
"""Greedy by size improved (the paper; TensorFlow Lite)."""
SHARED_IN_ORDER = SharedObjectsSolver("shared_in_order", _in_order)
"""Greedy in operator order (TensorFlow Lite, greedy_in_order_assignment)."""
SHARED_EQUALITY = SharedObjectsSolver("shared_equality", _of_equal_size)
"""Equality: only units of one size share an object (TensorFlow Lite, equality_assignment)."""
