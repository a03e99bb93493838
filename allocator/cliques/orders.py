"""What a clique needs because of its alignments: the lowest of the stacks in which its chunks can lie."""

import numpy as np
from attrs import define, field

from allocator.cliques.clique import Clique
from allocator.cliques.low_stacks import quick_top, stack_columns
from allocator.cliques.prices import PriceSearch
from allocator.kernels.stacks import LOOKS, MOST, Stacks, lowest_stack
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, distinct

MOST_LOOKS, _LARGEST_LOOKS = 16_000_000, 128_000_000
"""Sets of chunks that are looked at for all cliques of a problem: where nothing limits them, a third of a second; and
at most, so that they take 40 MB. More of them prove more."""
_LOOKS_OF_NODE, _LOOKS_OF_SECOND = 26, 12_000_000
"""Looks for each node, and for each second, of the search behind it: a quarter of their time, so that the default
number of nodes of that search has about as many as there are without limits."""
_LOOKS_OF_SET = 266
"""All looks over the sets of one round. More sets prove more, and take more looks in each clique."""


def looks_within(nodes: int, seconds: float) -> int:
    """Returns the looks that go with a search that is limited to so many nodes and seconds."""
    return int(min(_LARGEST_LOOKS, nodes * _LOOKS_OF_NODE, max(seconds, 0.0) * _LOOKS_OF_SECOND))


@define
class StackSearch:
    """A search for the lowest stacks of cliques. `looks` are left to it; a round has `sets` sets at most."""

    looks: int = MOST_LOOKS
    sets: int = field()

    @sets.default
    def _sets_of_looks(self) -> int:
        return max(2 * MOST, self.looks // _LOOKS_OF_SET)

    def bytes_needed(self, clique: Clique, proved: int) -> int:
        """Returns the bytes that every arena with the clique's free chunks has, or `proved` if that is more.

        Heads, pinned chunks and all of the tails but the shortest are left out of account. Nothing is proved where all
        have one alignment, where of two alignments none is a multiple of the other, or where some quick order needs no
        more than `proved`. Orders of more than `MOST` chunks are not searched.
        """
        free = clique.some(clique.pinned == FREE)
        if len(free) < 2:
            return proved
        alignment = np.gcd(free.alignment, free.shift)
        cells = distinct(alignment)[::-1]
        if len(cells) == 1 or (cells[:-1] % cells[1:]).any():
            return proved
        outside = int((free.size // cells[0] * cells[0]).sum() + free.tail.min())
        return outside + self._lowest(free.size % cells[0], alignment, cells[cells > 1], proved - outside)

    def _lowest(self, size: Column, alignment: Column, cells: Column, proved: int) -> int:
        """Returns what chunks need without their whole cells of the widest alignment."""
        order = np.lexsort((-size, -alignment))
        size, alignment = size[order], alignment[order]
        columns = stack_columns(size, alignment, cells)
        proved = max(proved, _least_top(columns))
        quick, self.looks = quick_top(size, alignment, self.looks)
        if quick is None or quick <= proved:
            return proved
        prices = PriceSearch(self.looks)
        proved, self.looks = prices.top(size, alignment, cells, proved), prices.looks
        if len(size) > MOST or quick <= proved:
            return proved
        stacks = _stacks(columns, (0, quick - 1, self.looks), self.sets)
        least = compiled(lowest_stack)(stacks, proved)
        self.looks = int(stacks.cursor[LOOKS])
        return max(int(least), proved)


def _stacks(columns: tuple[Column, ...], cursor: tuple[int, ...], sets: int) -> Stacks:
    """Returns the state of the search, with room for so many sets in a round, and none yet."""
    levels = len(columns[3])
    scratch = (np.zeros(n, np.int64) for n in (levels, levels, *(2 * sets,) * 3, 4 * sets + 1))
    return Stacks(*(*columns, *scratch, np.array(cursor, np.int64)))


def _least_top(columns: tuple[Column, ...]) -> int:
    """Returns what the chunks of the first columns need, as they waste the holes that they do not fill.

    The hole of the topmost is not wasted.
    """
    size, _, _, cells, _, hole, filler, _ = columns
    holes, fillers = hole.reshape(len(cells), -1), filler.reshape(len(cells), -1)
    wasted = holes.clip(0).sum(axis=1) - holes.max(axis=1) - fillers.sum(axis=1)
    return int(size.sum() + wasted.max(initial=0))
