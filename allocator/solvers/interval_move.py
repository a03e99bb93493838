"""MegEngine's INTERVAL_MOVE: the longest-lived units first, each where the peak rises least, moving others up."""

import numpy as np
from attrs import frozen

from allocator.kernels.interval_move import insert_units, settle
from allocator.kernels.mode import KernelMode
from allocator.problem import Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.units import units_of


@frozen(eq=False)
class IntervalMove:
    """Longest lifetimes first, then the earliest, then the largest.

    O(n^2). Placed units move, so offsets cannot be pinned.

    While it chooses places, sizes are rounded up to alignments, and addresses are not; then all settle, aligned.
    """

    name: str = "interval_move"
    traits: Traits = Traits(pinned=False, conflicts=False, most_chunks=5_000)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_of(problem)
        life = units.end - units.begin
        units = units.in_order(np.lexsort((units.alignment, -units.size, units.begin, -life)))
        count = len(units.ids)
        mode = KernelMode.of(count)
        rounded = -(-units.size // units.alignment) * units.alignment
        begin, end, size, alignment, room = mode.numbers(units.begin, units.end, units.size, units.alignment, rounded)
        address, order, load, met, floor, marks = mode.zeros(count, count, count, count, count + 1, count)
        mode.kernel(insert_units)(begin, end, room, address, order, load, met, floor, marks)
        mode.kernel(settle)(begin, end, size, alignment, order, address)
        return Answer(units.offsets(problem, address))


INTERVAL_MOVE = IntervalMove()
