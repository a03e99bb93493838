"""Greedy by breadth for shared objects (Pisarchyk and Lee 2020; TensorFlow Lite)."""

import numpy as np

from allocator.breadths import breadths_of
from allocator.kernels.shared_objects import AT_NEED, FAR
from allocator.problem import Column
from allocator.solvers.base import Traits
from allocator.solvers.placing.sweep_events import breadth_ranks
from allocator.solvers.placing.units import Units
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, share_in_order


def _share(graph: InterferenceGraph) -> Column:
    """Gives objects to units by breadth: first those alive where most bytes are; among them the largest.

    Each takes the smallest free object that is large enough, else lets the largest free one grow.
    """
    order = np.lexsort((-graph.units.size, _first_visit(graph.units)))
    return share_in_order(graph, order, FAR, AT_NEED)


def _first_visit(units: Units) -> Column:
    """Returns when each unit is first reached in a sweep over ticks, broadest first (ties: earliest)."""
    live = breadths_of(units.begin, units.end, units.size)
    return breadth_ranks(units.begin, units.end, live.tick, live.value)


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=100_000)
SHARED_BY_BREADTH = SharedObjectsSolver("shared_by_breadth", _share, TRAITS)
