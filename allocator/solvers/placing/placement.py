"""Best-gap placement: chains one by one, each into the tightest gap between those placed before that it meets.

The rule is that of greedy by size (Pisarchyk and Lee 2020): the gap that leaves least over, the lowest of those, else
behind all that the chain meets. Any order will do.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from attrs import field, frozen

from allocator.kernels.gaps import ARENA, AT, NOT_BEGUN
from allocator.kernels.mode import SMALL, KernelMode
from allocator.kernels.numbers import Numbers
from allocator.problem import NO_CAPACITY, Column, Problem, column
from allocator.solvers.base import SolverOptions, without_empty
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.placing.covers import Covers
from allocator.solvers.placing.neighbours import Neighbours
from allocator.solvers.placing.sweep import Sweep
from allocator.solvers.search.budget import Budget

NO_LIMITS = SolverOptions()
ENDLESS = 2**62
"""More than a kernel can look at."""
MOST_PAIRS = 4_000_000
"""The most pairs of chunks that meet that are stored, in some 50 bytes each. More are found anew for each order."""
MOST_PAIRS_ONCE = 50_000
"""The most pairs that are stored for a single order."""
_PLAIN_PAIRS = 20_000
"""The most pairs with which plain kernels place: that takes 60 ms, and machine code 10 (tools/bench_zoo.py)."""
MANY_CONFLICTS = 1_000
"""Where a chunk has more than twice as many conflicts, the bytes in use may be searched instead of their users."""
SHORT = 100
"""The bytes in use are searched only where most chunks live for less than one in so many ticks, and few live long."""


class GapSearch(Protocol):
    """Finds what bars a body's way."""

    def place(self, order: Numbers, limit: int, offset: Numbers, cursor: Numbers, looks: int, /) -> int:
        """Places bodies as the kernel `place_near` does."""


GapSearchMaker = Callable[[Problem, Column, KernelMode], GapSearch]


@frozen(eq=False)
class Placer:
    """Body i is the chain of chunk ids[i], `size[i]` bytes. Orders and offsets are columns of bodies.

    The search has scratch of its own, so a placer serves one thread. All searches give the same
    offsets.
    """

    problem: Problem
    ids: Column = field(converter=column)
    size: Column = field(converter=column)
    mode: KernelMode
    search: GapSearch
    cursor: Numbers

    @classmethod
    def of(cls, problem: Problem, mode: KernelMode | None = None) -> "Placer":
        """Returns a placer for many orders. `runner`: instead of the one for problems of that size."""
        return cls.by(suitable_search(problem, MOST_PAIRS), problem, mode)

    @classmethod
    def by(cls, search: GapSearchMaker, problem: Problem, mode: KernelMode | None = None) -> "Placer":
        """Returns a placer that uses this search."""
        ids = roots(problem)
        mode = mode or KernelMode.of(len(ids) if count_conflicts(problem) <= _PLAIN_PAIRS else SMALL)
        return cls(problem, ids, problem.size[ids], mode, search(problem, ids, mode), *mode.zeros(3))

    def __len__(self) -> int:
        return len(self.ids)

    def bodies(self, chunks: Column) -> Column:
        """Returns the bodies of these roots."""
        return np.searchsorted(self.ids, chunks)

    def place(self, order: Column, options: SolverOptions = NO_LIMITS) -> Column:
        """Returns the offset of each body, when all are placed in this order, pinned ones first.

        What has no place when the time is over lies at -1.
        """
        numbers, offset = self.mode.numbers(np.array(order), self.problem.pinned[self.ids])
        self._begin(0)
        go_on = partial(self.search.place, numbers, NO_CAPACITY, offset, self.cursor)
        Budget.of_time(options).run(go_on, lambda: self.cursor[AT] == len(order))
        return np.array(offset, np.int64)

    def place_rest(self, order: Numbers, kept: int, limit: int, offset: Numbers) -> int:
        """Places all but the first `kept` of an order, whose offsets in `offset` stay. Returns the bytes of the arena.

        `order` and `offset` are what `runner` takes: lists, or columns that can be written. As soon as the arena would
        be above `limit` it ends, and the rest lies at -1.
        """
        self._begin(kept)
        self.search.place(order, limit, offset, self.cursor, ENDLESS)
        return self.cursor[ARENA]

    def _begin(self, kept: int) -> None:
        self.cursor[AT], self.cursor[ARENA] = kept, NOT_BEGUN

    def offsets(self, by_body: Column) -> Column:
        """Returns the offsets of all chunks from those of the bodies; 0 for chunks of no bytes."""
        by_chunk = np.zeros(len(self.problem), np.int64)
        by_chunk[self.ids] = by_body
        return without_empty(self.problem, self.problem.chains.offsets(by_chunk))


def suitable_search(problem: Problem, most_pairs: int) -> GapSearchMaker:
    """Returns the quickest search. Neighbours are listed for at most `most_pairs` conflicts, or given conflicts."""
    pairs = count_conflicts(problem)
    if problem.conflicts is not None or pairs <= most_pairs:
        return Neighbours.of
    lives = problem.end - problem.begin
    return Covers.of if pairs > MANY_CONFLICTS * len(problem) and np.median(lives) * SHORT < lives.max() else Sweep.of


def roots(problem: Problem) -> Column:
    """Returns the ids of the chunks to place: those that have bytes and overwrite nothing."""
    is_root = problem.size > 0
    is_root[problem.src] = False
    return np.flatnonzero(is_root)
