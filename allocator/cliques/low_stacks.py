"""Low stacks of chunks that are alive at once, by beam search, and the columns in which kernels take such chunks."""

from collections.abc import Iterator
from random import Random

import numpy as np
from attrs import frozen

from allocator.kernels.gaps import DIGITS
from allocator.kernels.stacks import NO_CHUNK, NO_HOLE, STACKS, Beam, grow_stacks
from allocator.machine_code.arrays import compiled
from allocator.problem import Column, distinct

MOST_TOP = 2**31
"""The most bytes of the highest stack of chunks: their square is a number of 64 bits."""
_MARK = 2**62
_WIDEST = 8
"""Stacks of each round of a quick search, at most."""
_PART = 8
"""A quick search takes this part of the looks at most, the eighth."""
_LOOKS_OF_CANDIDATE = 5
"""Sets that the search for the lowest stack looks at in the time of a candidate of a beam search."""


@frozen(eq=False)
class BeamSearch:
    """A search for a low stack. In each round each stack grows by a chunk, and the best `width` of them go on.

    The widest chunks come first; their alignment is above 1. Of two alignments one is a multiple of the other.
    """

    beam: Beam
    width: int

    @classmethod
    def of(cls, size: Column, alignment: Column, width: int, seed: int = 0) -> "BeamSearch":
        """Returns a search that has one stack, of no chunk."""
        columns = stack_columns(size, alignment, distinct(alignment[alignment > 1])[::-1])
        count, levels, chance = len(size), len(columns[3]), Random(seed)
        mark = np.array([chance.randrange(1, _MARK) for _ in range(count)])
        lengths = (
            *(2 * width, 2 * width, count * width, count * width),
            *(2 * width * count + 1, 2 * width * count + 1, DIGITS, 2 * width, levels, levels, levels, levels),
        )
        scratch = (np.zeros(n, np.int64) for n in lengths)
        return cls(Beam(*(*columns, mark, np.zeros(2 * width * count, np.int8), *scratch, np.array([1]))), width)

    def rounds(self, capacity: int) -> Iterator[int]:
        """Searches for a stack within a capacity. Yields the number of candidates of each round."""
        total = int(np.array(self.beam.size).sum()) + 1
        for done in range(len(self.beam.size)):
            if self.beam.cursor[STACKS]:
                yield compiled(grow_stacks)(self.beam, done, capacity, total)

    def tops(self) -> Column:
        """Returns the top of each stack of the last round."""
        return np.array(self.beam.top)[: self.beam.cursor[STACKS]]

    def lowest(self) -> list[int]:
        """Returns the chunks of the lowest stack behind all rounds, the topmost first; none if there is no stack."""
        if not len(self.tops()):
            return []
        stack, chunks = int(np.argmin(self.tops())), list[int]()
        for done in reversed(range(len(self.beam.size))):
            chunks.append(int(self.beam.topmost[done * self.width + stack]))
            stack = int(self.beam.parent[done * self.width + stack])
        return chunks


def highest_top(size: Column, alignment: Column) -> int:
    """Returns what no stack of chunks is above: each wastes less than its alignment."""
    return int((size + alignment).sum())


def quick_top(size: Column, alignment: Column, looks: int) -> tuple[int | None, int]:
    """Returns the top of a low stack, None where the looks are too few, and how many of them are left.

    Where stacks may be higher than `MOST_TOP`, it is what none of them is above. Looks are those of the search for the
    lowest stack.
    """
    work = len(size) * len(size) * _LOOKS_OF_CANDIDATE // 2 + 1
    width = min(looks // (_PART * work), _WIDEST)
    if width <= 0:
        return None, looks
    highest = highest_top(size, alignment)
    if highest > MOST_TOP:
        return highest, looks
    search = BeamSearch.of(size, alignment, width)
    for _ in search.rounds(highest):
        pass
    return int(search.tops().min()), looks - width * work


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
