"""What a clique needs because of its alignments: the lowest of the stacks in which its chunks can lie."""

from collections.abc import Iterator

import numpy as np
from attrs import define, field

from allocator.cliques.clique import Clique
from allocator.cliques.prices import PriceSearch, quick_looks, quick_top
from allocator.kernels.stacks import LOOKS, MOST, NO_CHUNK, NO_HOLE, Stacks, lowest_stack
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
        if quick_looks(len(size)) > self.looks or (quick := quick_top(size, alignment)) <= proved:
            return proved
        prices = PriceSearch(self.looks - quick_looks(len(size)))
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


def stack_columns(size: Column, alignment: Column, cells: Column) -> tuple[Column, ...]:
    """Returns the first columns of `Stacks`, of chunks of which the widest come first.

    Of two alignments one is a multiple of the other; `cells` are those above 1.
    """
    is_alike = (np.diff(size) == 0) & (np.diff(alignment) == 0)
    rows = [row for cell in cells.tolist() for row in _rows(size, alignment, cell)]
    cell, limit, hole, filler = map(np.array, zip(*rows, strict=True))
    columns = (
        size,
        alignment,
        np.append(NO_CHUNK, np.where(is_alike, np.arange(len(size) - 1), NO_CHUNK)),
        cell,
        limit,
        hole.ravel(),
        filler.ravel(),
        np.argsort(-hole, axis=1, kind="stable").ravel(),
    )
    return tuple(map(np.ascontiguousarray, columns))


def _rows(size: Column, alignment: Column, cell: int) -> Iterator[tuple[int, int, Column, Column]]:
    """Yields the rows of a cell: the cell, its limit, and for each chunk its hole and what it fills of holes.

    A looser chunk fills what it has beside whole cells. Where that fits into no hole, a second row says that it fills
    less; it does not count holes that are larger than all of these. Without holes it would prove nothing.
    """
    is_at_edge = alignment % cell == 0
    hole = np.where(is_at_edge, -size % cell, NO_HOLE)
    filler = np.where(is_at_edge, 0, size % cell)
    yield cell, cell, hole, filler
    deepest = int(hole.max())
    less = _unfit_fillers(filler, alignment, cell, deepest)
    if deepest and (less < filler).any():
        yield cell, deepest, hole, less


def _unfit_fillers(filler: Column, alignment: Column, cell: int, deepest: int) -> Column:
    """Returns the fillers, where those that do not fit into the deepest hole behind their alignment are lessened.

    Such a chunk takes a cell more, which it does not fill. So one fills nothing of the holes; of several, two may share
    a cell more, and three fill the deepest hole at most.
    """
    is_unfit = filler > deepest // alignment * alignment
    count = int(is_unfit.sum())
    if count < 2:
        return np.where(is_unfit, 0, filler)
    least = int(alignment[is_unfit].min())
    third = -(-(deepest // least * least) // 3) if count > 2 else 0
    return np.where(is_unfit, np.minimum(np.maximum(filler - cell // 2, third), filler), filler)
