"""The strategies of MegEngine's static memory planning: PUSHDOWN, BEST_FIT and INTERVAL_MOVE.

MegEngine frees and allocates the chunks of a tick by id. The strategies named `_sorted` differ from it in that alone:
the longest-lived of a tick come first, then the largest. None of all can take pinned offsets: addresses are decided
late, or from the past alone.
"""

from collections.abc import Callable

import numpy as np
from attrs import frozen

from allocator.kernels.freelist import WIDTH, order_blocks, place_best_fit, sink
from allocator.kernels.interval_move import INSERTED, insert_units, settle
from allocator.kernels.mode import KernelMode
from allocator.problem import FREE, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.naive import completed
from allocator.solvers.placing.timeline import Timeline, sorted_timeline, timeline_by_id
from allocator.solvers.placing.units import units_of
from allocator.solvers.search.budget import Budget


@frozen(eq=False)
class Pushdown:
    """A free-list simulation orders the blocks, then every chain sinks as low as that order lets it. O(n log n).

    (Steps 5 and 6 of MegEngine's planning.) The order of the blocks is found before any address is. Of free blocks of
    one size the one comes first that has been free for longest. MegEngine compares the addresses of its own list nodes
    there, so its C library decides, and its plans may differ from process to process.
    """

    name: str
    timeline: Callable[[Problem], Timeline]
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        line = self.timeline(problem)
        count = len(line.ids)
        mode = KernelMode.of(count)
        begin, end, size, alignment, root, inner, dest, at, freed = mode.numbers(
            line.begin, line.end, line.size, line.alignment, line.root, line.inner, line.dest, line.at, line.freed
        )
        blocks, held, lower, upper, behind, offset = mode.zeros(
            WIDTH * (2 * count + 2), count, count, count, count + 1, count
        )
        mode.kernel(order_blocks)(begin, end, size, root, dest, at, freed, blocks, held, lower, upper, behind)
        mode.kernel(sink)(size, alignment, root, inner, lower, upper, behind, offset)
        return Answer(line.offsets(problem, offset))


@frozen(eq=False)
class BestFit:
    """A heap of real addresses: the smallest free block that fits is split, else the arena grows. O(n log n).

    It places chunks as they begin and knows of no later ones.
    """

    name: str
    timeline: Callable[[Problem], Timeline]
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        line = self.timeline(problem)
        count = len(line.ids)
        mode = KernelMode.of(count)
        begin, end, size, alignment, dest, at, freed = mode.numbers(
            line.begin, line.end, line.size, line.alignment, line.dest, line.at, line.freed
        )
        blocks, held, offset = mode.zeros(WIDTH * (2 * count + 2), count, count)
        cell = int(np.gcd.reduce(line.alignment[line.root])) if count else 1
        mode.kernel(place_best_fit)(begin, end, size, alignment, dest, at, freed, cell, blocks, held, offset)
        return Answer(line.offsets(problem, offset))


@frozen(eq=False)
class IntervalMove:
    """Longest lifetimes first (then the earliest, then the largest), each where the peak rises least. O(n^2).

    Placed units move up. While it chooses places, sizes are rounded up to alignments, and addresses are not; then all
    settle, aligned. What has no place when the time is over lies above all others.
    """

    name: str = "interval_move"
    traits: Traits = Traits(pinned=False, conflicts=False, most_chunks=5_000)

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_of(problem)
        life = units.end - units.begin
        units = units.in_order(np.lexsort((units.alignment, -units.size, units.begin, -life)))
        count = len(units.ids)
        mode = KernelMode.of(count)
        rounded = units.padded
        begin, end, size, alignment, room = mode.numbers(units.begin, units.end, units.size, units.alignment, rounded)
        address, order, load, met, floor, marks = mode.zeros(count, count, count, count, count + 1, count)
        (cursor,) = mode.zeros(2)

        def insert(looks: int) -> int:
            return mode.kernel(insert_units)(begin, end, room, address, order, load, met, floor, marks, cursor, looks)

        Budget.of_time(options).run(insert, lambda: cursor[INSERTED] == count)
        inserted = cursor[INSERTED]
        mode.kernel(settle)(begin, end, size, alignment, order, address, inserted)
        placed = np.where(np.arange(count) < inserted, np.array(address), FREE)
        return Answer(completed(problem, units.ids, placed))


PUSHDOWN = Pushdown("pushdown", timeline_by_id)
PUSHDOWN_SORTED = Pushdown("pushdown_sorted", sorted_timeline)
BEST_FIT = BestFit("best_fit", timeline_by_id)
BEST_FIT_SORTED = BestFit("best_fit_sorted", sorted_timeline)
INTERVAL_MOVE = IntervalMove()
