"""MegEngine's INTERVAL_MOVE: longest-lived units first, each where the peak rises least, moving others up."""

from attrs import frozen

from allocator.kernels.interval_move import insert_units, settle
from allocator.problem import Problem
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.runner import Runner
from allocator.solvers.units import longest_first


@frozen(eq=False)
class IntervalMove:
    """O(n^2). Units move after they have been placed, so offsets cannot be pinned.

    While it chooses places, sizes are rounded up to alignments, and addresses are not; then all settle, aligned.
    """

    name: str = "interval_move"
    traits: Traits = Traits(pinned=False, conflicts=False, most_chunks=20_000)

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        units = longest_first(problem)
        count = len(units.ids)
        run = Runner.of(count)
        rounded = -(-units.size // units.alignment) * units.alignment
        begin, end, size, alignment, room = run.numbers(units.begin, units.end, units.size, units.alignment, rounded)
        address, order, load, met, floor, marks = run.zeros(count, count, count, count, count + 1, count)
        run.kernel(insert_units)(begin, end, room, address, order, load, met, floor, marks)
        run.kernel(settle)(begin, end, size, alignment, order, address)
        return Answer(units.offsets(problem, address))


INTERVAL_MOVE = IntervalMove()
