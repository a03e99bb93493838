"""Min-cost flow for shared objects (Lee et al. 2019; TensorFlow Lite, min_cost_flow_assignment), by way of scipy.

In their network each unit takes its bytes from a source, at the cost of its size, or from one unit that has ended, at
the cost of the bytes that it is larger by; each unit hands its bytes on once. That is an assignment problem: to hand on
saves min(size, size), and the savings are to be largest. An object has the size of its largest unit, which may be less
than the flow costs; between flows of one cost scipy decides.
"""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from allocator.errors import UnsupportedProblemError
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.search.budget import Budget
from allocator.solvers.shared import NO_OBJECT, InterferenceGraph, SharedObjectsSolver

_NAME = "shared_min_cost_flow"
_MOST = 8_000
"""Units for which there is memory: 16 bytes for each pair."""


def _share(graph: InterferenceGraph, _budget: Budget) -> Column:
    """Returns the path of the flow of each unit as its object. O(n^3) at worst, mostly near n^2."""
    count = len(graph)
    if count > _MOST:
        raise UnsupportedProblemError(f"strategy {_NAME!r} takes {_MOST} chains at most, not {count}")
    begin, end, size = graph.units.begin, graph.units.end, graph.units.size.astype(float)
    cost = np.maximum.outer(-size, -size)
    cost[end[:, None] > begin] = 0
    givers, takers = _optimize().linear_sum_assignment(cost)
    source = np.full(count, NO_OBJECT)
    source[takers] = np.where(cost[givers, takers] < 0, givers, NO_OBJECT)
    return _paths(source)


def _paths(source: Column) -> Column:
    """Returns a number for each path; sources stand before those who take from them."""
    taken: list[int] = []
    objects = 0
    for giver in source.tolist():
        taken.append(objects if giver == NO_OBJECT else taken[giver])
        objects += giver == NO_OBJECT
    return column(taken)


@cache
def _optimize() -> Any:
    return import_module("scipy.optimize")


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=1_000, package="scipy")
SHARED_MIN_COST_FLOW = SharedObjectsSolver(_NAME, _share, TRAITS)
