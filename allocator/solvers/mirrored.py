"""Problems seen from the top of the arena: the chunks that are to lie topmost stand on the floor there.

A cell has as many bytes as the alignment. Where all chunks have one alignment, and those alive in a tick need all cells
of the arena, the topmost of them decides how many bytes of the last cell the arena has. Solvers choose it by other
things. Here it is chosen first, and the others are planned around it in whole cells.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, field, frozen

from allocator.breadths import breadths_of
from allocator.problem import FREE, TOO_MANY_BYTES, Column, Problem, align_up, column
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.placing.units import Units, units_of
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Improver, Search


@frozen(eq=False)
class Mirrored:
    """A problem whose offsets count down from the top of an arena of `top` bytes, of which `floor` bytes are left out.

    Chunk i is unit rows[i] of the whole problem, in whole cells; chunks behind these keep a cell free. Of a plan of
    `goal` bytes, the whole problem has one whose last cell has those units only that were chosen for it.
    """

    whole: Problem
    units: Units
    rows: Column = field(converter=column)
    problem: Problem
    top: int
    floor: int

    @property
    def goal(self) -> int:
        """The bytes of the plans that are looked for."""
        return self.top - self.floor

    def offsets(self, offset: Column) -> Column:
        """Returns the offset of each chunk of the whole problem, from any plan of this one."""
        room, low = self.units.padded, np.zeros(len(self.units.ids), np.int64)
        low[self.rows] = self.floor + offset[: len(self.rows)]
        return self.units.offsets(self.whole, max(self.top, int((low + room).max())) - low - room)


def mirrored(problem: Problem, goal: int) -> Mirrored | None:
    """Returns the problem seen from above, in which units that are small enough have the last cell of the goal.

    None where none of them has it in all ticks that need all cells, where there is no such tick or the goal has whole
    cells, where chunks are pinned, conflict or differ in alignment, and where cells have too many bytes. Units of one
    cell are preferred: these are left out, so that any solver will do. Larger ones are pinned, and so is a chunk of one
    cell while none of them is alive.
    """
    units = units_of(problem)
    cell = int(units.alignment.max(initial=1))
    is_free = problem.conflicts is None and bool((problem.pinned == FREE).all())
    if goal % cell == 0 or not is_free or (units.alignment != cell).any() or _are_too_many(units, cell):
        return None
    room, top = units.padded, align_up(goal, cell)
    live = breadths_of(units.begin, units.end, room)
    full, is_suitable = live.tick[live.value >= top], top - room + units.size <= goal
    for is_left_out, rows in (True, is_suitable & (room == cell)), (False, is_suitable):
        chosen = _covering(units, np.flatnonzero(rows), full)
        if len(chosen):
            around = _without if is_left_out else _above
            return Mirrored(problem, units, *around(units, chosen), top, cell * is_left_out)
    return None


def _are_too_many(units: Units, cell: int) -> bool:
    """Returns whether units in whole cells, with another cell beside each of them, may have too many bytes."""
    return float(units.size.sum(dtype=float)) + 4.0 * cell * (len(units.ids) + 1) >= TOO_MANY_BYTES


def _covering(units: Units, rows: Column, ticks: Column) -> Column:
    """Returns some of the units, by time, of which one is alive in each of these ticks, no two at once; or none.

    Of those that are alive in the first tick that is not covered, the one that ends last is taken. O(n log n).
    """
    rows = rows[np.argsort(units.begin[rows], kind="stable")]
    begin, ends, end, chosen = units.begin[rows], units.end[rows], 0, list[int]()
    for tick in ticks.tolist():
        if tick >= end:
            first, last = np.searchsorted(begin, (end, tick + 1)).tolist()
            end = int(ends[first:last].max(initial=0))
            if end <= tick:
                return column(())
            chosen.append(int(rows[first + np.argmax(ends[first:last])]))
    return column(chosen)


def _without(units: Units, chosen: Column) -> tuple[Column, Problem]:
    """Returns the other units, and the problem that they are."""
    rows = np.setdiff1d(np.arange(len(units.ids)), chosen)
    room, free = units.padded[rows], np.full(len(rows), FREE)
    return rows, Problem(units.begin[rows], units.end[rows], room, units.alignment[rows], free)


def _above(units: Units, chosen: Column) -> tuple[Column, Problem]:
    """Returns all units, and the problem of them in which the chosen ones are pinned, and a cell in other ticks."""
    rows = np.arange(len(units.ids))
    begin, end = np.append(0, units.end[chosen]), np.append(units.begin[chosen], units.end.max())
    begin, end = begin[begin < end], end[begin < end]
    cells = np.full(len(begin), units.alignment[0])
    return rows, Problem(
        np.append(units.begin, begin),
        np.append(units.end, end),
        np.append(units.padded, cells),
        np.append(units.alignment, cells),
        np.append(np.where(np.isin(rows, chosen), 0, FREE), np.zeros(len(cells))),
    )


@frozen(eq=False)
class MirroredSearch:
    """Another strategy's search on a mirrored problem, which starts from first fit there.

    Plans of others do not help it, because something else may lie topmost in them.
    """

    solver: Improver
    mirror: Mirrored

    @property
    def name(self) -> str:
        """The name of the other strategy."""
        return self.solver.name

    def search(self, _problem: Problem, _offset: Column, options: SolverOptions, budget: Budget) -> Search:
        """Returns a search from a plan: an offset for each chunk."""
        options = evolve(options, goal=self.mirror.goal)
        start = FIRST_FIT.solve(self.mirror.problem, options).offset
        return _Search(self.mirror, self.solver.search(self.mirror.problem, start, options, budget))


@frozen(eq=False)
class _Search:
    """A search for all chunks by one on the mirrored problem."""

    mirror: Mirrored
    search: Search
    proved: int = field(default=0, init=False)

    @property
    def arena(self) -> int:
        """The bytes of the best plan."""
        return arena_bytes(self.mirror.whole, self.offsets())

    def steps(self) -> Iterator[None]:
        """Searches."""
        return self.search.steps()

    def take(self, offset: Column) -> None:
        """Takes no plan of another search."""

    def offsets(self) -> Column:
        """Returns the offset of each chunk in the best plan."""
        return self.mirror.offsets(self.search.offsets())
