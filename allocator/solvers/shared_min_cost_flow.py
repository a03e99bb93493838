"""Min-cost flow for shared objects (Lee et al. 2019; TensorFlow Lite, min_cost_flow_assignment).

In their network each unit takes its bytes from a source, at the cost of its size, or from one unit that has ended, at
the cost of the bytes that it is larger by; each unit hands its bytes on once. That is an assignment problem: to hand on
saves min(size, size), and the savings are to be largest. An object has the size of its largest unit, which may be less
than the flow costs; between flows of one cost the order of the units decides.
"""

from functools import partial

import numpy as np

from allocator.kernels.linear_assignment import AT, CURSOR, DONE, NONE, LinearAssignment, assign
from allocator.kernels.mode import KernelMode
from allocator.problem import Column, column
from allocator.solvers.base import Traits
from allocator.solvers.placing.units import Units
from allocator.solvers.search.budget import Budget
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver

_PLAIN = 40
"""Units up to which the kernel runs plain: its time may grow with the cube of their number."""


def _share(graph: InterferenceGraph, budget: Budget) -> Column:
    """Returns the path of the flow of each unit as its object. O(n^3) at worst, mostly near n^2.

    When the budget is over, units that were not looked at hand nothing on.
    """
    units, count = graph.units, len(graph)
    mode = KernelMode(count <= _PLAIN)
    search = assignment_of(units, mode)
    budget.run(partial(mode.kernel(assign), search), lambda: search.cursor[DONE] == count)
    source = np.array(search.giver, np.int64)
    is_taken = (source != NONE) & (units.end[source] <= units.begin)
    return _paths(np.where(is_taken, source, NONE))


def assignment_of(units: Units, mode: KernelMode) -> LinearAssignment:
    """Returns the state of a search in which nothing is assigned yet."""
    count = len(units.ids)
    begin, end, size, giver, taker = mode.numbers(
        units.begin, units.end, units.size, np.full(count, NONE), np.full(count, NONE)
    )
    giver_price, taker_price, before, cost, order, cursor = mode.zeros(*(count,) * 5, CURSOR)
    cursor[AT] = NONE
    return LinearAssignment(begin, end, size, giver_price, taker_price, giver, taker, before, cost, order, cursor)


def _paths(source: Column) -> Column:
    """Returns a number for each path; sources stand before those who take from them."""
    taken: list[int] = []
    objects = 0
    for giver in source.tolist():
        taken.append(objects if giver == NONE else taken[giver])
        objects += giver == NONE
    return column(taken)


TRAITS = Traits(pinned=False, conflicts=False, most_chunks=1_000)
SHARED_MIN_COST_FLOW = SharedObjectsSolver("shared_min_cost_flow", _share, TRAITS)
