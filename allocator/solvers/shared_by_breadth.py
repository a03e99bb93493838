"""Greedy by breadth for shared objects (Pisarchyk and Lee 2020; TensorFlow Lite)."""

import numpy as np

from allocator.kernels.shared_objects import AT_NEED, FAR
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.shared import SharedObjectsSolver, Tenants, share_in_order
from allocator.solvers.units import Units


def _share(found: Tenants) -> Column:
    """Those alive where most bytes are come first; among them the largest.

    Each takes the smallest free object that is large enough, else lets the largest free one grow.
    """
    order = np.lexsort((-found.units.size, _first_visit(found.units)))
    return share_in_order(found, order, FAR, AT_NEED)


def _first_visit(found: Units) -> Column:
    """When each unit is met first, going through the ticks by breadth, broadest first (ties: earliest).

    Ticks in which nothing begins or ends are left out. O(n log n).
    """
    count = len(found.ids)
    ticks, tick = np.unique(np.concatenate((found.begin, found.end)), return_inverse=True)
    change = np.zeros(len(ticks), np.int64)
    np.add.at(change, tick, np.concatenate((found.size, -found.size)))
    visit = np.empty(len(ticks), np.int64)
    visit[np.argsort(-np.cumsum(change), kind="stable")] = np.arange(len(ticks))
    return _least(visit, tick[:count], tick[count:])


def _least(values: Column, low: Column, high: Column) -> Column:
    """The least of values[low:high], for many such ranges: each is two ranges, as long as a power of two, together."""
    found = np.empty(len(low), np.int64)
    level = np.frexp((high - low).astype(float))[1] - 1
    for k in range(int(level.max(initial=-1)) + 1):
        rows = level == k
        found[rows] = np.minimum(values[low[rows]], values[high[rows] - 2**k])
        values = np.minimum(values[: -(2**k)], values[2**k :])
    return column(found)


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=100_000)
SHARED_BY_BREADTH = SharedObjectsSolver("shared_by_breadth", _share, TRAITS)
