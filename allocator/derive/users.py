"""Which steps touch the bytes of each chunk."""

import numpy as np
from attrs import field, frozen

from allocator.derive.sharing import share
from allocator.problem import Column, column
from allocator.ragged import row_starts
from allocator.steps import Program


@frozen(eq=False)
class Users:
    """Chunk c is written or read, itself or a view of it, in the steps tick[start[c] : start[c + 1]]: in order, once.

    The first of them writes it.
    """

    start: Column = field(converter=column)
    tick: Column = field(converter=column)

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def writer(self) -> Column:
        """Returns the step that writes each chunk."""
        return self.tick[self.start[:-1]]

    @property
    def last(self) -> Column:
        """Returns the last step that touches each chunk."""
        return self.tick[self.start[1:] - 1]

    def of(self, chunk: int) -> Column:
        """Returns the steps that use one chunk."""
        return self.tick[self.start[chunk] : self.start[chunk + 1]]

    def others(self, chunk: int, tick: int) -> Column:
        """Returns the steps that use one chunk, without one of them."""
        ticks = self.of(chunk)
        return column(ticks[ticks != tick])


def users(program: Program) -> Users:
    """Derives the users of each chunk of a program. A view that nothing reads is no use."""
    chunk_of = share(program).chunk_of
    chunks, rows = chunk_of.tolist(), list[tuple[int, int]]()
    for tick, step in enumerate(program.steps):
        rows.extend((chunks[value], tick) for value in (*step.reads, *step.writes))
    pairs = np.unique(np.array(rows, np.int64).reshape(-1, 2), axis=0)
    count = int(chunk_of.max(initial=-1)) + 1
    start = row_starts(pairs[:, 0], count)
    return Users(start, pairs[:, 1])
