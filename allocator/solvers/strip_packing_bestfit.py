"""Strip packing by best fit (Sekiyama et al. 2018, "Profile-guided memory optimization"; Pisarchyk and Lee 2020)."""

import numpy as np
from attrs import frozen

from allocator.kernels.mode import KernelMode
from allocator.kernels.strip_packing import pack_strip
from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.units import Units, units_of


@frozen(eq=False)
class StripPackingBestfit:
    """A solver that places at the lowest place the longest-lived chunk that fits between its higher neighbours.

    Of equally long-lived ones, it takes the largest. Mostly near O(n log n). What lies below is never looked at again,
    so offsets cannot be pinned.
    """

    name: str = "strip_packing_bestfit"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_of(problem)
        units = units.in_order(np.lexsort((units.alignment, units.begin, -units.size, units.begin - units.end)))
        by_begin = np.argsort(units.begin, kind="stable")
        offset = np.zeros(len(by_begin), np.int64)
        if len(by_begin):
            offset[by_begin] = _packed(units.in_order(by_begin), by_begin)
        return Answer(units.offsets(problem, offset))


def _packed(units: Units, rank: Column) -> Column:
    """Returns the offsets of units that stand by their begin and are to be preferred by rank; there is one at least."""
    count = len(rank)
    ticks, tick = np.unique(np.concatenate((units.begin, units.end)), return_inverse=True)
    mode = KernelMode.of(count)
    begin, end, size, alignment = mode.numbers(tick[:count], tick[count:], units.size, units.alignment)
    ranks, unit_of, first = mode.numbers(rank, np.argsort(rank), np.searchsorted(units.begin, ticks))
    leaves, lines = 1 << count.bit_length(), 1 << len(ticks).bit_length()
    best, nearest, farthest, tree = mode.zeros(2 * leaves, 2 * leaves, 2 * leaves, 2 * lines)
    until, since, offset = mode.zeros(len(ticks), len(ticks), count)
    mode.kernel(pack_strip)(
        begin, end, size, alignment, ranks, unit_of, first, best, nearest, farthest, tree, until, since, offset
    )
    return np.array(offset)


STRIP_PACKING_BESTFIT = StripPackingBestfit()
