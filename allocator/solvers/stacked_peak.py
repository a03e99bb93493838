"""Plans around a low stack of what is alive at the peak, where alignments make its order matter.

Beam search finds the stack. The rest is placed around it by ejection search, which may move the peak's chunks, too.
First comes what is alive in nearly as full ticks, in windows that grow.
"""

from collections.abc import Iterator

import numpy as np
from attrs import define, frozen

from allocator.breadths import breadths_of
from allocator.cliques.aligned import cells, whole_cells
from allocator.cliques.clique import Clique
from allocator.cliques.low_stacks import MOST_TOP, BeamSearch, highest_top
from allocator.problem import FREE, Column, Problem, distinct
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.ejection import EJECTION, reach
from allocator.solvers.placing.ranking import chain_lifetimes
from allocator.solvers.placing.units import units_of
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.partial_plan import PartialPlan, PlanRepair
from allocator.solvers.search.steps import Steps

_TICKS = 16
"""Ticks that are looked at for the one that surely needs most bytes."""
_MOST_UNITS = 1_000
"""Units of a peak, at most: the time of a round of the beam search grows with their square."""
_CANDIDATES = 30
"""Chunks on stacks that are looked at in the time of one node of a search."""
_NARROWEST = 32
"""Stacks of a round in the first beam search; each one has twice as many as the one before."""
_MOST_WORK = 400_000
"""Stacks of a round times their chunks, at most: some 20 MB."""
_LEAST_STEPS = 2_000
"""Steps in which a window is to find its place; more where the stack took more."""
_PARTS = (1, 2, 4, 8)
"""Parts of the gap between the arena and the top of the stack that are tried, the whole gap first."""


@frozen(eq=False)
class Peak:
    """Units that are alive at once, those of the widest alignment first: unit k is the chain of root ids[k].

    Of two alignments one is a multiple of the other. There are no units where their order does not matter.
    """

    ids: Column
    size: Column
    alignment: Column

    @classmethod
    def of(cls, problem: Problem) -> "Peak":
        """Returns the units alive in the tick that surely needs most bytes; none where some are pinned, or conflict."""
        nothing = cls(*(np.zeros(0, np.int64),) * 3)
        used = problem.size > 0
        if not used.any() or problem.conflicts is not None or (problem.pinned != FREE).any():
            return nothing
        if np.ptp(problem.alignment[used]) == 0:
            return nothing
        clique = _fullest(problem)
        kinds = distinct(clique.alignment)[::-1]
        if len(kinds) == 1 or (kinds[:-1] % kinds[1:]).any():
            return nothing
        if len(clique) > _MOST_UNITS or highest_top(clique.size % kinds[0], clique.alignment) > MOST_TOP:
            return nothing
        end = chain_lifetimes(problem)[1][clique.ids]
        ties = end, problem.begin[clique.ids], clique.size
        order = np.lexsort((*ties, -(clique.size % kinds[0]), -clique.alignment))
        return cls(clique.ids[order], clique.size[order], clique.alignment[order])

    def __len__(self) -> int:
        return len(self.ids)

    def low_stack(self, width: int, capacity: int, seed: int, budget: Budget) -> Steps[Column]:
        """Returns an offset for each unit, of the lowest stack that is found within a capacity; none if there is none.

        In each round `width` stacks go on. The search ends without a stack where the budget does.
        """
        rest = self.size % int(self.alignment[0])
        search = BeamSearch.of(rest, self.alignment, width, seed)
        for candidates in search.rounds(capacity - int((self.size - rest).sum())):
            budget.spend(candidates // (_CANDIDATES * budget.price) + 1)
            yield
            if budget.is_over:
                return np.zeros(0, np.int64)
        return self._offsets(search.lowest())

    def _offsets(self, units: list[int]) -> Column:
        """Returns an offset for each unit on a stack of them, of which the topmost comes first; none if it is empty."""
        top, offset = 0, np.zeros(len(units), np.int64)
        for unit in reversed(units):
            offset[unit] = -(-top // int(self.alignment[unit])) * int(self.alignment[unit])
            top = int(offset[unit] + self.size[unit])
        return offset


def _fullest(problem: Problem) -> Clique:
    """Returns the units alive in the tick that surely needs most bytes."""
    units = units_of(problem)
    live = breadths_of(units.begin, units.end, units.padded)
    cliques = []
    for tick in live.tick[np.argsort(-live.value, kind="stable")[:_TICKS]].tolist():
        rows = np.flatnonzero((units.begin <= tick) & (tick < units.end))
        none, ids = np.zeros(len(rows), np.int64), units.ids[rows]
        cliques.append(Clique(ids, ids, units.size[rows], units.alignment[rows], *(none,) * 3, none + FREE))
    return max(cliques, key=lambda clique: max(whole_cells(clique, cell) for cell in (1, *cells(clique))))


@frozen(eq=False)
class _Window:
    """Chunks that are alive in some of the fullest ticks, and a plan of them: chunk k of its problem is ids[k]."""

    ids: Column
    plan: PartialPlan


def _windows(problem: Problem, peak: Peak, seed: int) -> list[_Window]:
    """Returns windows around the peak, each with about twice as many units as the one before, but not with all."""
    units = units_of(problem)
    live = breadths_of(units.begin, units.end, units.padded)
    rank = np.empty(len(live.value), np.int64)
    rank[np.argsort(-live.value, kind="stable")] = np.arange(len(rank))
    first, behind = np.searchsorted(live.tick, units.begin), np.searchsorted(live.tick, units.end)
    fullest = np.minimum.reduceat(rank, np.stack((first, behind), 1).ravel())[::2]
    fullest[np.isin(units.ids, peak.ids)] = 0
    ordered, windows, rows = np.sort(fullest), list[_Window](), peak.ids
    while len(rows) < len(ordered):
        rows = np.flatnonzero(fullest <= ordered[min(2 * len(rows), len(ordered)) - 1])
        if len(rows) < len(ordered):
            kept = units.in_order(rows)
            window = Problem(kept.begin, kept.end, kept.size, kept.alignment, np.full(len(rows), FREE))
            windows.append(_Window(kept.ids, PartialPlan.of(window, seed)))
    return windows


@frozen(eq=False)
class StackedPeak:
    """Searches by ejection from plans in which the peak is stacked low. It bears the name of the ejection search."""

    name: str = EJECTION.name

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> "_Search":
        """Returns a search from a plan: an offset for each chunk."""
        peak, whole = Peak.of(problem), PartialPlan.of(problem, options.seed)
        windows = [*_windows(problem, peak, options.seed), _Window(np.arange(len(problem)), whole)]
        return _Search(whole, budget, offset, peak, windows, options)


@define(eq=False)
class _Search(PlanRepair):
    """The best plan so far, and windows in which others grow around the peak. The last window has all chunks."""

    peak: Peak
    windows: list[_Window]
    options: SolverOptions

    def steps(self) -> Iterator[None]:
        """Searches until the goal is reached, the budget spent, or the widest beam search over."""
        width, count = _NARROWEST, len(self.peak)
        widest = min(_MOST_WORK // max(count, 1), 2 ** min(count + 1, _MOST_WORK.bit_length()))
        while self.arena > self.options.goal and not self.budget.is_over and width <= widest:
            spent = self.budget.spent
            stack = yield from self.peak.low_stack(width, self.arena - 1, self.options.seed, self.budget)
            if len(stack):
                yield from self._place_around(stack, max(self.budget.spent - spent, _LEAST_STEPS))
            width *= 2

    def _place_around(self, stack: Column, steps: int) -> Iterator[None]:
        """Places what is in each window, from the plan of the one before, below the top of the stack if it can."""
        target = max(int((stack + self.peak.size).max()), self.options.goal)
        placed, arena = np.full(len(self.plan.problem), self.arena), self.arena
        placed[self.peak.ids] = stack
        for window in self.windows:
            for part in _PARTS:
                goal = arena - max((arena - target) // part, 1)
                window.plan.start_from(placed[window.ids])
                window.plan.take_out_above(goal)
                if (yield from reach(window.plan, goal, steps, self.budget)):
                    break
            else:
                return
            target, placed[window.ids] = goal, window.plan.offsets()
        if arena_bytes(self.plan.problem, placed) < self.arena:
            self.take(placed)


STACKED_PEAK = StackedPeak()
