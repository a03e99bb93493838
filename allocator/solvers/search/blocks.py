"""Blocks: chunks that fit together without an empty byte are joined, and searches move them as one.

Two blocks of the same bytes, of which one begins when the other ends, make a row; blocks of the same lifetime make a
stack. Each is a block again. (Guillotine blocks: Bortfeldt and Jungmann 2012, "A tree search algorithm for solving the
multi-dimensional strip packing problem with guillotine cutting constraint".) Blocks leave plans out, so what is proved
for them is no bound for their chunks.
"""

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from allocator.problem import FREE, Column, Problem, column, stable_order
from allocator.ragged import RaggedArray
from allocator.solvers.base import SolverOptions
from allocator.solvers.placing.units import Units, offsets_of, units_of
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import Improver, Search

_NEAR = (1, 2, 3)
"""Of blocks of the same lifetime, by bytes, one makes pairs with those so many places behind."""
_LEAST_JOINED = 0.9
"""Chunks that are surely joined leave at most this part of blocks, or else no others are joined."""
_NEARLY_ALL = 0.99
"""If more than this part of the chunks is left after the first rows, these agreed by chance, and no more are joined."""
_RARITIES = (100, 10, 1, 0)
"""How seldom rows of blocks would agree by chance that are joined: at most once in so many, or 0 for any, in this
order. Pieces of a rectangle that was cut at once meet in one tick by hundreds, and rows of them are mostly wrong."""
_MOST_LOOKS = 20
"""Times that each chunk is looked at. Rectangles that were cut need 5 to 15; a spiral would take a round for each."""
_LOOKS_OF_NODE = 5
"""Chunks that are looked at in the time of one node of a search."""
_PART = 2 / 3
"""Blocks take at most this part of the nodes that are left. A search has to move them."""


@frozen(eq=False)
class Blocks:
    """Unit k of a problem (the chain of root ids[k]) lies inner[k] bytes above the bottom of block[k].

    `problem` is that of the blocks.
    """

    whole: Problem
    ids: Column = field(converter=column)
    block: Column = field(converter=column)
    inner: Column = field(converter=column)
    problem: Problem

    @classmethod
    def of(cls, whole: Problem, budget: Budget | None = None) -> "Blocks":
        """Joins the chunks of a problem without pinned offsets and conflicts, in O(n log n).

        Where the nodes or the time do not suffice, fewer chunks are joined.
        """
        units = units_of(whole)
        units = units.in_order(np.lexsort((units.alignment, units.size, units.end, units.begin)))
        level, count, looked = _Level.of(units), len(units.ids), 0
        budget = budget or Budget.of_time(SolverOptions())
        most = min(_MOST_LOOKS * count, int(budget.left * _PART) * _LOOKS_OF_NODE)
        while looked <= most and not budget.is_over:
            looked += len(level)
            budget.spend(len(level) // _LOOKS_OF_NODE)
            is_joined = any(map(level.join_surely, _RARITIES))
            least = _NEARLY_ALL if is_joined else _LEAST_JOINED
            if len(level) > least * count or not (is_joined or level.stack_shortest()):
                break
        joined = Problem(level.begin, level.end, level.size, level.alignment, np.full(len(level), FREE))
        return cls(whole, units.ids, level.block, level.inner, joined)

    def offsets(self, by_block: Column) -> Column:
        """Returns the offset of each chunk, from those of the blocks."""
        return offsets_of(self.whole, self.ids, by_block[self.block] + self.inner)

    def joined(self, offset: Column) -> Column | None:
        """Returns the offset of each block in a plan of all chunks; None where blocks are torn there."""
        bottom, by_block = offset[self.ids] - self.inner, np.zeros(len(self.problem), np.int64)
        by_block[self.block] = bottom
        return by_block if (by_block[self.block] == bottom).all() else None


@define(eq=False)
class _Level:
    """The blocks so far, and where each unit lies in them: `block` and `inner`."""

    begin: Column
    end: Column
    size: Column
    alignment: Column
    block: Column
    inner: Column

    @classmethod
    def of(cls, units: Units) -> "_Level":
        """Returns a block for each unit."""
        count = len(units.ids)
        columns = units.begin, units.end, units.size, units.alignment
        return cls(*columns, np.arange(count), np.zeros(count, np.int64))

    def __len__(self) -> int:
        return len(self.begin)

    def join_surely(self, rarity: int) -> bool:
        """Joins blocks whose bytes agree, by the first of three rules that applies. Returns whether one did.

        Rows; stacks of all blocks of a lifetime that make a row with others; stacks of two that do. Rows that are not
        so rare as that are left out.
        """
        before, after = self._rows(np.arange(len(self)), self.size, rarity)
        if len(before):
            self._join(_heads(before, after, len(self)), np.zeros(len(self), np.int64))
            return True
        group = self._groups()
        return any(self._stack(self._in_rows(sets(group), rarity)) for sets in (_whole, _pairs))

    def _rows(self, first: Column, size: Column, rarity: int) -> tuple[Column, Column]:
        """Returns pairs of stacks that make a row; stack k has size[k] bytes, and block first[k] is in it.

        The more of them end and begin in the tick in which two meet, and the fewer bytes these have, the sooner their
        bytes agree by chance.
        """
        begin, end = self.begin[first], self.end[first]
        before, after = touching(begin, end, size, self.alignment[first])
        meeting = _occurrences(end, end[before]) * _occurrences(begin, end[before])
        is_rare = rarity * meeting <= size[before]
        return before[is_rare], after[is_rare]

    def stack_shortest(self) -> bool:
        """Stacks blocks of the same lifetime: of all lifetimes the shorter half. Returns whether there are any."""
        group = self._groups()
        stacks = np.flatnonzero(np.bincount(group) > 1)
        life = np.zeros(len(self), np.int64)
        life[group] = self.end - self.begin
        short = stacks[np.argsort(life[stacks], kind="stable")][: (len(stacks) + 1) // 2]
        return self._stack(np.where(np.isin(group, short), group, len(self) + np.arange(len(self))))

    def _groups(self) -> Column:
        """Returns a number for each block, the same for those that may lie on each other without an empty byte."""
        is_whole = self.size % self.alignment == 0
        order = np.lexsort((self.size, ~is_whole, self.alignment, self.end, self.begin))
        is_next = is_whole[order][1:]
        for values in (self.alignment, self.end, self.begin):
            is_next = is_next & (np.diff(values[order]) == 0)
        group = np.zeros(len(self), np.int64)
        group[order[1:]] = np.cumsum(~is_next)
        return group

    def _in_rows(self, sets: RaggedArray, rarity: int) -> Column:
        """Returns a number for each block, the same for those of a set that makes a row with another set.

        Each block is of one set in one row at most; rows of fewer blocks come first.
        """
        first, count = sets.item[sets.start[:-1]], np.diff(sets.start)
        bytes_before = np.append(0, np.cumsum(self.size[sets.item]))
        size = bytes_before[sets.start[1:]] - bytes_before[sets.start[:-1]]
        before, after = self._rows(first, size, rarity)
        by_count = np.argsort(count[before] + count[after], kind="stable")
        pair = np.concatenate((before[by_count], after[by_count]))
        rank, block = _members(sets, pair, np.tile(np.arange(len(before)), 2))
        claimed = np.full(len(self), len(before))
        np.minimum.at(claimed, block, rank)
        is_torn = np.bincount(rank, claimed[block] != rank, len(before)) > 0
        label, block = _members(sets, pair[~np.tile(is_torn, 2)], first[pair[~np.tile(is_torn, 2)]])
        stack = np.arange(len(self))
        stack[block] = label
        return stack

    def _stack(self, label: Column) -> bool:
        """Puts blocks with the same label on each other. Returns whether there are any."""
        order = np.argsort(label, kind="stable")
        top = np.cumsum(self.size[order])
        bottom, first = top - self.size[order], np.searchsorted(label[order], label[order])
        inner = np.zeros(len(self), np.int64)
        inner[order] = bottom - bottom[first]
        return self._join(label, inner)

    def _join(self, label: Column, inner: Column) -> bool:
        """Makes one block of those with the same label. Returns whether there are any. Blocks are numbered by time."""
        is_used = np.bincount(label) > 0
        count, place = np.count_nonzero(is_used), (np.cumsum(is_used) - 1)[label]
        if count == len(self):
            return False
        begin, end, size, alignment = (np.zeros(count, np.int64) for _ in range(4))
        begin[place] = self.begin
        np.minimum.at(begin, place, self.begin)
        np.maximum.at(end, place, self.end)
        np.maximum.at(size, place, inner + self.size)
        alignment[place] = self.alignment
        order = stable_order(alignment, size, end, begin)
        number = np.empty(count, np.int64)
        number[order] = np.arange(count)
        self.inner = self.inner + inner[self.block]
        self.block = number[place[self.block]]
        self.begin, self.end, self.size, self.alignment = begin[order], end[order], size[order], alignment[order]
        return True


def touching(begin: Column, end: Column, size: Column, alignment: Column) -> tuple[Column, Column]:
    """Returns pairs of the same bytes and alignment, of which one begins when the other ends.

    Each is the first of one pair and the second of one at most.
    """
    count = len(begin)
    keys = [np.concatenate(two) for two in ((end, begin), (size, size), (alignment, alignment))]
    order = stable_order(*keys)
    is_new = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    run = np.append(0, np.cumsum(is_new)) if count else order
    places = []
    for half in (order < count, order >= count):
        rows = np.flatnonzero(half)
        rank = np.arange(len(rows)) - np.searchsorted(run[rows], run[rows])
        places.append((order[rows] % max(count, 1), run[rows] * (count + 1) + rank))
    (before, one), (after, other) = places
    _, first, second = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return before[first], after[second]


def _occurrences(values: Column, wanted: Column) -> Column:
    """Returns how often each wanted value occurs."""
    ordered = np.sort(values)
    return np.searchsorted(ordered, wanted, "right") - np.searchsorted(ordered, wanted, "left")


def _heads(before: Column, after: Column, count: int) -> Column:
    """Returns the first block of the row that each block is in; after[k] follows before[k]."""
    head = np.arange(count)
    head[after] = before
    while (head[head] != head).any():
        head = head[head]
    return head


def _whole(group: Column) -> RaggedArray:
    """Returns each block alone, and each group of several."""
    alone = np.arange(len(group))
    several = np.flatnonzero(np.bincount(group) > 1)
    number = np.full(len(group), -1)
    number[several] = len(group) + np.arange(len(several))
    items = np.flatnonzero(number[group] >= 0)
    rows = np.concatenate((alone, number[group[items]]))
    return RaggedArray.grouped(rows, np.concatenate((alone, items)), len(group) + len(several))


def _pairs(group: Column) -> RaggedArray:
    """Returns each block alone, and pairs in a group that are near each other in bytes."""
    order = np.argsort(group, kind="stable")
    sets = [np.stack((order[:-far], order[far:]), 1)[group[order[:-far]] == group[order[far:]]] for far in _NEAR]
    pairs = np.concatenate(sets)
    start = np.append(np.arange(len(group)), len(group) + 2 * np.arange(len(pairs) + 1))
    return RaggedArray(start, np.append(np.arange(len(group)), pairs))


def _members(sets: RaggedArray, rows: Column, labels: Column) -> tuple[Column, Column]:
    """Returns the blocks of some sets, and the label of the set for each."""
    count = np.diff(sets.start)[rows]
    items = np.arange(int(count.sum())) + np.repeat(sets.start[rows] - np.cumsum(count) + count, count)
    return np.repeat(labels, count), sets.item[items]


@frozen(eq=False)
class BlockSearch:
    """Another strategy's search on blocks, which starts from a plan of theirs: an offset for each block.

    It goes on from plans of chunks where they keep the blocks.
    """

    solver: Improver
    blocks: Blocks
    start: Column

    @property
    def name(self) -> str:
        """The name of the other strategy."""
        return self.solver.name

    def search(self, _problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> Search:
        """Returns a search from a plan: an offset for each chunk."""
        search = self.solver.search(self.blocks.problem, self.start, options, budget)
        result = _Search(self.blocks, search)
        result.take(offset)
        return result


@define(eq=False)
class _Search:
    """A search for chunks by one for their blocks."""

    blocks: Blocks
    search: Search
    proved: int = field(default=0, init=False)

    @property
    def arena(self) -> int:
        """The bytes of the best plan: blocks have no empty bytes at their ends."""
        return self.search.arena

    def steps(self) -> Iterator[None]:
        """Searches."""
        return self.search.steps()

    def take(self, offset: Column) -> None:
        """Goes on from another plan where it keeps the blocks."""
        by_block = self.blocks.joined(offset)
        if by_block is not None:
            self.search.take(by_block)

    def offsets(self) -> Column:
        """Returns the offset of each chunk in the best plan."""
        return self.blocks.offsets(self.search.offsets())
