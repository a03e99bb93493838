"""What chunks that are alive at once waste for their alignments, proved by prices of chunks."""

import math

import numpy as np
from attrs import define

from allocator.cliques.low_stacks import quick_top
from allocator.kernels.runs import ROUNDS, UNIT, Runs, least_waste
from allocator.machine_code.arrays import compiled
from allocator.problem import Column, distinct

_MOST_ROUNDS, _LEAST_ROUNDS = 2_000, 200
"""Changes of the prices: at most, and the fewest that are worth while."""
_PART = 2
"""Prices for one cell take at most this part of the looks that are left, the half."""
_MOST_PLACES = 16
"""Alignments of which a cell has more count as one byte: the time grows with the square of their number in a cell."""
_MOST_CELL = 1 << 16
"""The widest cell, in bytes: costs are found for each place in it."""
_MOST_COST = 1 << 40
"""Bytes of a cell times chunks of each level, at most: so many may a run cost, and sums of costs have 64 bits."""
_NUMBERS_OF_LOOK, _NUMBERS_OF_WALK, _NUMBERS_OF_PLACE, _NUMBERS_OF_PART = 20, 450, 2, 5
"""Numbers of a row that are looked at in the time in which the search for the lowest stack looks at one set, in which a
walk begins, goes through a place of the lowest level, and in which a run is asked for one of its parts."""


@define
class PriceSearch:
    """A search for prices. `looks` are left to it."""

    looks: int

    def top(self, size: Column, alignment: Column, cells: Column, proved: int) -> int:
        """Returns what no stack is below, or `proved`. The widest chunks come first.

        The cells are tried one by one, from the widest: no chunk counts as aligned more than the cell, and those
        that are aligned much less count as loose. That makes no stack higher.
        """
        for cell in cells.tolist():
            capped = np.where(alignment < -(-cell // _MOST_PLACES), 1, np.minimum(alignment, cell))
            proved = self._top(size, capped, proved)
        return proved

    def _top(self, size: Column, alignment: Column, proved: int) -> int:
        """Returns what no stack is below, or `proved`.

        A low stack is found first: all is the quicker, the closer that is to the lowest.
        """
        levels = distinct(np.append(1, alignment))
        level, cell, total = np.searchsorted(levels, alignment), int(levels[-1]), int(size.sum())
        count = np.bincount(level, minlength=len(levels))
        if cell > _MOST_CELL or cell * math.prod((count + 1).tolist()) > _MOST_COST:
            return proved
        round_looks = _looks(count, levels)
        rounds = min(_MOST_ROUNDS, self.looks // (_PART * round_looks))
        if rounds < _LEAST_ROUNDS:
            return proved
        high, self.looks = quick_top(size, alignment, self.looks)
        if high is None or high <= proved:
            return proved
        runs = _runs(size[np.argsort(level, kind="stable")] % cell, count, levels)
        waste = int(compiled(least_waste)(runs, (high - total) * UNIT, rounds))
        self.looks -= int(runs.cursor[ROUNDS]) * round_looks
        return max(proved, total - (-waste // UNIT))


def _looks(count: Column, levels: Column) -> int:
    """Returns how long a change of prices takes, in looks of the search for the lowest stack.

    Each chunk has two walks, and each run is unfolded by looking at all chunks of less alignment.
    """
    places = levels[-1] // levels
    walk = _NUMBERS_OF_WALK + _NUMBERS_OF_PLACE * int(places[0]) + int((places[1:-1] ** 2).sum())
    walks = int(count.sum()) * 2 * walk
    unfolded = int(((count[1:] + 1) * np.cumsum(count)[:-1]).sum()) * _NUMBERS_OF_PART
    return (walks + unfolded) // _NUMBERS_OF_LOOK + 1


def _runs(size: Column, count: Column, levels: Column) -> Runs:
    """Returns the state of the search: chunks by level, so many of each, with prices of zero."""
    first = np.append(0, np.cumsum(count))
    places = levels[-1] // levels
    row = np.cumsum(np.append(0, (count[:-1] + 1) * places[:-1]))
    stage = np.append(0, np.cumsum(places))
    lengths = *(first[-2],) * 5, *(row[-1],) * 3, *(len(levels),) * 2, *(stage[-1],) * 2, 3
    price, best, change, used, is_open, *scratch = (np.zeros(int(n), np.int64) for n in lengths)
    by_level = (np.ascontiguousarray(levels), first, row, stage)
    return Runs(np.ascontiguousarray(size), price, best, change, used, is_open, *by_level, *scratch)
