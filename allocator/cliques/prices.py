"""What chunks that are alive at once waste for their alignments, proved by prices of chunks."""

import math
from collections.abc import Iterable

import numpy as np
from attrs import define

from allocator.kernels.runs import ROUNDS, UNIT, Runs, least_waste
from allocator.machine_code.arrays import compiled
from allocator.problem import Column, distinct

_MOST_ROUNDS, _LEAST_ROUNDS = 2_000, 200
"""Changes of the prices: at most, and the fewest that are worth while."""
_PART = 4
"""Prices for one cell take at most this part of the looks, the fourth."""
_MOST_CELL = 1 << 16
"""The widest cell, in bytes: costs are found for each place in it."""
_MOST_COST = 1 << 40
"""Bytes of a cell times chunks of each level, at most: so many may a run cost, and sums of costs have 64 bits."""
_NUMBERS_OF_LOOK = 20
"""Numbers that are looked at in the time in which the search for the lowest stack looks at one set."""


@define
class PriceSearch:
    """A search for prices. `looks` are left to it."""

    looks: int

    def top(self, size: Column, alignment: Column, cells: Column, proved: int) -> int:
        """Returns what no stack is below, or `proved`. The widest chunks come first.

        The cells are tried one by one, from the narrowest: no chunk counts as aligned more than the cell.
        """
        total = int(size.sum())
        for cell in cells[::-1].tolist():
            capped = np.minimum(alignment, cell)
            high = quick_top(size, capped)
            if high > proved:
                proved = max(proved, total - (-self._waste(size, capped, cell, high - total) // UNIT))
        return proved

    def _waste(self, size: Column, alignment: Column, cell: int, target: int) -> int:
        """Returns what is surely wasted, in parts of a byte; 0 where the looks are too few.

        Some stack wastes at most `target` bytes; all is the quicker, the closer that is to the least.
        """
        levels = distinct(np.append(1, alignment))
        round_looks = _looks(len(size), levels)
        rounds = min(_MOST_ROUNDS, self.looks // (_PART * round_looks))
        level = np.searchsorted(levels, alignment)
        count = np.bincount(level, minlength=len(levels))
        if rounds < _LEAST_ROUNDS or cell > _MOST_CELL or cell * math.prod((count + 1).tolist()) > _MOST_COST:
            return 0
        runs = _runs(size[np.argsort(level, kind="stable")] % cell, count, levels)
        waste = compiled(least_waste)(runs, target * UNIT, rounds)
        self.looks -= int(runs.cursor[ROUNDS]) * round_looks
        return int(waste)


def _looks(chunks: int, levels: Column) -> int:
    """Returns how long a change of prices takes, in looks of the search for the lowest stack."""
    places = levels[-1] // levels
    return int(chunks * 2 * (places[0] + (places[1:-1] ** 2).sum())) // _NUMBERS_OF_LOOK + 1


def _runs(size: Column, count: Column, levels: Column) -> Runs:
    """Returns the state of the search: chunks by level, so many of each, with prices of zero."""
    first = np.append(0, np.cumsum(count))
    places = levels[-1] // levels
    rows = int(((count[:-1] + 1) * places[:-1]).sum())
    row = np.cumsum(np.append(0, (count[:-1] + 1) * places[:-1]))
    stage = np.append(0, np.cumsum(places))
    lengths = *(first[-2],) * 5, *(rows,) * 3, *(len(levels),) * 2, *(stage[-1],) * 2, 3
    price, best, change, used, is_open, *scratch = (np.zeros(int(n), np.int64) for n in lengths)
    by_level = (np.ascontiguousarray(levels), first, row, stage)
    return Runs(np.ascontiguousarray(size), price, best, change, used, is_open, *by_level, *scratch)


def quick_top(size: Column, alignment: Column) -> int:
    """Returns the top of the lower of two stacks: what leaves most of a widest cell comes in its turn, or last."""
    last = int(np.argmax(np.where(alignment == alignment[0], -size % alignment[0], -1)))
    in_turn, is_last = np.ones(len(size), bool), np.zeros(len(size), bool)
    is_last[last] = True
    return min(_stacked(size, alignment, (in_turn,)), _stacked(size, alignment, (~is_last, is_last)))


def _stacked(size: Column, alignment: Column, parts: Iterable[Column]) -> int:
    """Returns the top where, of one part behind the other, next comes what wastes least, of these what comes first."""
    top = 0
    for part in parts:
        left = np.flatnonzero(part)
        while len(left):
            wasted = -top % alignment[left]
            at = int(np.argmin(wasted))
            top += int(wasted[at] + size[left[at]])
            left = np.delete(left, at)
    return top
