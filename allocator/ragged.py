"""Lists of numbers of different length in two columns (compressed sparse rows)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column, stable_order


def row_starts(rows: Column, count: int) -> Column:
    """Returns where each of `count` rows begins in a list sorted by rows, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))


@frozen(eq=False)
class RaggedArray:
    """Row i is item[start[i] : start[i + 1]]."""

    start: Column = field(converter=column)
    item: Column = field(converter=column)

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> "RaggedArray":
        """Returns these lists, one a row."""
        rows = [list(row) for row in lists]
        return cls(np.cumsum([0, *map(len, rows)]), [number for row in rows for number in row])

    @classmethod
    def grouped(cls, rows: Column, items: Column, count: int) -> "RaggedArray":
        """Returns `count` rows, each with its items in order; item k stands in row rows[k], in any order of rows."""
        return cls(row_starts(rows, count), items[np.lexsort((items, rows))])

    @classmethod
    def of_ranges(cls, first: Column, last: Column) -> "RaggedArray":
        """Returns rows of numbers in order: number k stands in the rows from first[k] to last[k]."""
        counts = last - first + 1
        numbers = np.repeat(np.arange(len(first)), counts)
        rows = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        return cls(row_starts(rows, int(last.max(initial=-1)) + 1), numbers[stable_order(rows)])

    def __len__(self) -> int:
        return len(self.start) - 1

    def row(self, i: int) -> Column:
        """Returns one list."""
        return self.item[self.start[i] : self.start[i + 1]]

    def row_of_each(self) -> Column:
        """Returns the row in which each item stands."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def lists(self) -> list[list[int]]:
        """Returns each row as a list of its own."""
        start, item = self.start.tolist(), self.item.tolist()
        return [item[a:b] for a, b in pairwise(start)]
