"""Strip packing: by best fit (Sekiyama et al. 2018, "Profile-guided memory optimization"; Pisarchyk and Lee 2020), and
by covers, which fill the lowest gap with the chunks that leave the least empty there."""

import time
from functools import partial

import numpy as np
from attrs import define, evolve, frozen

from allocator.breadths import breadths_of
from allocator.kernels.gaps import NOWHERE
from allocator.kernels.mode import KernelMode
from allocator.kernels.numbers import Numbers
from allocator.kernels.strip_packing import (
    MOST_WORTH,
    NOTHING,
    Cover,
    Skyline,
    Waiting,
    begin_strip,
    clear_strip,
    cover_lines,
    pack_strip,
)
from allocator.problem import FREE, Column, Problem, column
from allocator.solvers.base import ANY_COUNT, Answer, SolverOptions, Traits
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.naive import completed
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.placing.units import Units, units_of
from allocator.solvers.search.budget import Budget

_PLAIN = 40
"""Units up to which plain kernels pack."""
_NODES_OF_LOOKS = 2
"""Nodes of a search in whose time a cover looks at a thousand ticks and chunks."""


@frozen(eq=False)
class StripPackingBestfit:
    """A solver that places at the lowest place the longest-lived chunk that fits between its higher neighbours.

    Of equally long-lived ones, it takes the largest. Mostly near O(n log n). What lies below is never looked at again,
    so offsets cannot be pinned. What has no place when the time is over lies above all others.
    """

    name: str = "strip_packing_bestfit"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_of(problem)
        units = units.in_order(np.lexsort((units.alignment, units.begin, -units.size, units.begin - units.end)))
        by_begin = np.argsort(units.begin, kind="stable")
        offset = np.zeros(len(by_begin), np.int64)
        if len(by_begin):
            offset[by_begin] = _packed(units.in_order(by_begin), by_begin, Budget.of_time(options))
        return Answer(completed(problem, units.ids, offset))


def _packed(units: Units, rank: Column, budget: Budget) -> Column:
    """Returns the offsets of units that stand by their begin and are to be preferred by rank; there is one at least.

    Those that have none when the budget is over are FREE.
    """
    count = len(rank)
    ticks, tick = np.unique(np.concatenate((units.begin, units.end)), return_inverse=True)
    mode = KernelMode.of(count)
    begin, end, size, alignment = mode.numbers(tick[:count], tick[count:], units.size, units.alignment)
    ranks, unit_of, first = mode.numbers(rank, np.argsort(rank), np.searchsorted(units.begin, ticks))
    leaves, lines = 1 << count.bit_length(), 1 << len(ticks).bit_length()
    best, nearest, farthest, tree = mode.zeros(2 * leaves, 2 * leaves, 2 * leaves, 2 * lines)
    until, since = mode.zeros(len(ticks), len(ticks))
    (offset,) = mode.numbers(np.full(count, FREE))
    strip = best, nearest, farthest, tree, until, since
    mode.kernel(begin_strip)(end, ranks, *strip)
    go_on = partial(mode.kernel(pack_strip), begin, end, size, alignment, unit_of, first, *strip, offset)
    budget.run(go_on, lambda: best[1] == NOTHING)
    return np.array(offset)


@frozen(eq=False)
class StripPackingCover:
    """A solver that goes on where the skyline is lowest, as best fit does, and fills the whole gap there at once.

    Of all sets of chunks that live one after the other within the gap, it takes the one that leaves the least empty,
    where a tick counts more the closer it is to the peak. What has no place after half of the time, or when it looked
    at `nodes` thousand ticks and chunks, which takes two seconds, first fit places, as where many chunks live long.
    Where more than `meetings` pairs of chunks meet, first fit takes too long, and these lie above all others.
    """

    name: str = "strip_packing_cover"
    traits: Traits = Traits(pinned=False, conflicts=False, most_chunks=200_000)
    nodes: int = 300_000
    meetings: int = ANY_COUNT

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        units = units_of(problem)
        units = units.in_order(np.argsort(units.begin, kind="stable"))
        now = time.monotonic()
        limited = evolve(options, nodes=self.nodes, until=now + (options.until - now) / 2)
        strip, budget = _Strip.of(units), Budget.of(limited, self.nodes)
        budget.run(strip.fill, lambda: strip.is_whole)
        nodes = _NODES_OF_LOOKS * budget.spent
        if strip.is_whole or count_conflicts(problem) > self.meetings:
            return Answer(completed(problem, units.ids, np.array(strip.offset)), nodes=nodes)
        placed = np.full(len(problem), FREE)
        placed[units.ids] = column(strip.offset)
        return evolve(FIRST_FIT.solve(evolve(problem, pinned=placed), options), nodes=nodes)


@define(eq=False)
class _Strip:
    """Units that have an offset, and units that wait and have NOWHERE; `left` holds how many."""

    left: Numbers
    offset: Numbers
    _units: Waiting
    _skyline: Skyline
    _cover: Cover
    _peak: int
    _mode: KernelMode

    @classmethod
    def of(cls, units: Units) -> "_Strip":
        """Returns an empty strip for units by begin."""
        count = len(units.ids)
        mode = KernelMode(count <= _PLAIN)
        alive = breadths_of(units.begin, units.end, units.size)
        begin, end = np.searchsorted(alive.tick, units.begin), np.searchsorted(alive.tick, units.end)
        first, ticks = np.searchsorted(units.begin, alive.tick), len(alive.tick)
        worth, before = _worth(units.size, end - begin), np.arange(count) - 1
        waiting = Waiting(*mode.numbers(begin, end, units.size, units.alignment, worth, first, before))
        skyline = Skyline(*mode.zeros(2 << ticks.bit_length(), ticks, ticks))
        cover = Cover(*mode.numbers(alive.value), *mode.zeros(*[ticks] * 4))
        peak, (left, offset) = int(alive.value.max(initial=0)), mode.numbers(np.array([count]), np.full(count, NOWHERE))
        if count:
            mode.kernel(clear_strip)(skyline, cover, peak)
        return cls(left, offset, waiting, skyline, cover, peak, mode)

    @property
    def is_whole(self) -> bool:
        """Returns whether all units have an offset."""
        return self.left[0] == 0

    def fill(self, ticks: int) -> int:
        """Places units until all have an offset, or it looked at so many ticks and units. Returns how many they are."""
        return self._mode.kernel(cover_lines)(
            self._units, self._skyline, self._cover, self._peak, ticks, self.offset, self.left
        )


def _worth(size: Column, life: Column) -> Column:
    """Returns the 16th root of bytes times ticks, as a part of MOST_WORTH: small units are left for small gaps."""
    area = size.astype(float) * life
    part = area / area.max(initial=1.0)
    for _ in range(4):
        part = np.sqrt(part)  # of all roots only this one is the same on every machine
    return column(np.maximum(part * MOST_WORTH, 1).astype(np.int64))


STRIP_PACKING_BESTFIT = StripPackingBestfit()
STRIP_PACKING_COVER = StripPackingCover()
