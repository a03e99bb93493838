"""MegEngine's INTERVAL_MOVE: the longest-lived units first, each where the peak rises least, moving others up."""

import numpy as np
from attrs import frozen

from allocator.kernels.interval_move import insert_units, settle
from allocator.kernels.mode import Runner
from allocator.problem import Problem
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.placing.units import units


@frozen(eq=False)
class IntervalMove:
    """Of equal lives first the earliest, then the largest. O(n^2). What is placed moves, so offsets cannot be pinned.

    While it chooses places, sizes are rounded up to alignments, and addresses are not; then all settle, aligned.
    """

    name: str = "interval_move"
    traits: Traits = Traits(pinned=False, conflicts=False, most_chunks=5_000)

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        found = units(problem)
        life = found.end - found.begin
        found = found.in_order(np.lexsort((found.alignment, -found.size, found.begin, -life)))
        count = len(found.ids)
        run = Runner.of(count)
        rounded = -(-found.size // found.alignment) * found.alignment
        begin, end, size, alignment, room = run.numbers(found.begin, found.end, found.size, found.alignment, rounded)
        address, order, load, met, floor, marks = run.zeros(count, count, count, count, count + 1, count)
        run.kernel(insert_units)(begin, end, room, address, order, load, met, floor, marks)
        run.kernel(settle)(begin, end, size, alignment, order, address)
        return Answer(found.offsets(problem, address))


INTERVAL_MOVE = IntervalMove()
