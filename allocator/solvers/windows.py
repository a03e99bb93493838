"""Ejection search in windows of time, for large problems: only what lives near the highest units has to move."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from allocator.problem import FREE, Column, Problem, column, stable_order
from allocator.ragged import RaggedArray
from allocator.solvers.base import SolverOptions
from allocator.solvers.ejection import EJECTION, Targets, reach
from allocator.solvers.placing.units import Units, offsets_of, units_by_begin
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.partial_plan import PartialPlan
from allocator.solvers.search.steps import Steps

_SHARE = 0.5
"""The part of the gap between arena and goal by which the arena is to shrink at once, at most."""
_WIDTH, _WIDEST = 2, 64
"""A window goes on before and behind the highest units for so many times the units that begin while one of them lives,
at first and at most; twice as many after each failure."""
_SLOT = 1_000
"""Units that begin one after the other, for whose first tick those that live on are listed."""
_BATCH = 2_000
"""Units of windows that are searched at once, at least."""
_UNITS_OF_NODE = 6
"""Units of a window that are made ready in the time of one node of a search."""
_LARGEST = 1 / 2
"""The part of all units that a window may hold: with more, the search in all of them is as quick."""

Flags = npt.NDArray[np.bool_]


@frozen(eq=False)
class EjectionInWindows:
    """Lowers the highest units of a plan, window by window; what lives beyond a window keeps its place.

    Of a large problem the ejection search has to know what meets what, whole. Here, it knows a window at a time. It
    ends where a window would hold most units, or where most live long. Nothing may be pinned, and lifetimes decide what
    meets. It bears the name of the ejection search.
    """

    name: str = EJECTION.name

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> "_Search":
        """Returns a search from a plan: an offset for each chunk."""
        return _Search(problem, units_by_begin(problem), offset, budget, options.goal, options.seed)


@define(eq=False)
class _Search:
    """The best plan so far: of the chunks, roots alone lie where `best` says. `units` stand by begin."""

    problem: Problem
    units: Units
    best: Column
    budget: Budget
    goal: int
    seed: int
    arena: int = field(init=False)
    proved: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.take(self.best)

    def take(self, offset: Column) -> None:
        """Goes on from another plan: an offset for each chunk."""
        self.best = offset.copy()
        self._measure()

    def offsets(self) -> Column:
        """Returns the offset of each chunk in the best plan."""
        return offsets_of(self.problem, self.units.ids, self.best[self.units.ids])

    def steps(self) -> Iterator[None]:
        """Searches until the goal is reached, the budget spent, or windows are no use."""
        carried, targets, width = _carried(self.units), Targets(_SHARE), _WIDTH
        while len(carried) and self.arena > self.goal and not self.budget.is_over:
            target = targets.below(self.arena, self.goal)
            windows = self._windows(target, width)
            if max(last - first for first, last in windows) > _LARGEST * len(self.units.ids):
                return
            is_lower = yield from self._lower(windows, carried, target, targets)
            targets.learn(is_lower)
            width = width if is_lower else min(2 * width, _WIDEST)
            self._measure()

    def _measure(self) -> None:
        self.arena = int((self.best[self.units.ids] + self.units.size).max(initial=0))
        self.budget.found(self.arena)

    def _windows(self, target: int, width: int) -> list[tuple[int, int]]:
        """Returns the windows around all units that end above a target, the one with the highest unit first.

        A window is a range of units by begin.
        """
        units = self.units
        top = self.best[units.ids] + units.size
        high = np.flatnonzero(top > target)
        stop = np.searchsorted(units.begin, units.end[high])
        margin = width * max(int(np.median(stop - high)), 1)
        first, last = np.maximum(high - margin, 0), np.minimum(stop + margin, len(units.ids))
        last = np.maximum.accumulate(last)
        begins = np.flatnonzero(np.append(True, first[1:] > last[:-1]))
        order = stable_order(top.max() - np.maximum.reduceat(top[high], begins))
        ends = last[np.append(begins[1:], len(high)) - 1]
        return list(zip(first[begins][order].tolist(), ends[order].tolist(), strict=True))

    def _lower(
        self, windows: list[tuple[int, int]], carried: RaggedArray, target: int, targets: Targets
    ) -> Steps[bool]:
        """Places all units below a target, some windows at a time. Returns whether it could."""
        for rows, is_beyond in _batches(self.units, carried, windows):
            self.budget.spend(len(rows) // _UNITS_OF_NODE)
            part = self.units.in_order(rows)
            kept = np.where(is_beyond, self.best[part.ids], FREE)
            plan = PartialPlan.of_units(self.problem, part, kept, self.seed)
            plan.start_from(self.best)
            plan.take_out_above(target)
            if not (yield from reach(plan, target, targets.steps(len(plan)), self.budget)):
                return False
            self.best[part.ids] = plan.placed()
        return True


def _batches(units: Units, carried: RaggedArray, windows: list[tuple[int, int]]) -> Iterator[tuple[Column, Flags]]:
    """Yields the units by begin that live in the next windows, at least so many, and which of them live beyond, too."""
    rows, beyond, count = list[Column](), list[Flags](), 0
    for at, (first, last) in enumerate(windows):
        alive = _alive(units, carried, first, last)
        rows.append(alive)
        beyond.append(_lives_beyond(units, alive, first, last))
        count += len(alive)
        if count >= _BATCH or at + 1 == len(windows):
            several, place = np.unique(np.concatenate(rows), return_index=True)
            yield column(several), np.concatenate(beyond)[place]
            rows, beyond, count = [], [], 0


def _carried(units: Units) -> RaggedArray:
    """Returns the units that live on in the first tick of each slot; no list where these are more than the units."""
    slot = np.arange(len(units.ids)) // _SLOT
    last = np.searchsorted(units.begin[::_SLOT], units.end) - 1
    is_short = len(slot) > 0 and int((last - slot).sum()) <= len(slot)
    return RaggedArray.of_ranges(slot + 1, last) if is_short else RaggedArray([0], [])


def _alive(units: Units, carried: RaggedArray, first: int, last: int) -> Column:
    """Returns the units by begin that live in a window: from the begin of its first unit to that of unit `last`."""
    slot = first // _SLOT
    rows = np.concatenate((carried.row(slot), np.arange(slot * _SLOT, last)))
    return column(rows[units.end[rows] > units.begin[first]])


def _lives_beyond(units: Units, rows: Column, first: int, last: int) -> Flags:
    """Returns which units of a window live before or after it, too."""
    since = units.begin[first]
    until = units.begin[last] if last < len(units.ids) else units.end.max()
    is_beyond: Flags = (units.begin[rows] < since) | (units.end[rows] > until)
    return is_beyond


IN_WINDOWS = EjectionInWindows()
