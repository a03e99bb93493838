"""One problem placed in many orders: who bars whom is found once, each order then costs one call of a kernel."""

import numpy as np
from attrs import field, frozen

from allocator.chains import Chains, chains
from allocator.kernels import gaps
from allocator.kernels.numbers import Numbers
from allocator.problem import NO_CAPACITY, Column, Problem, column
from allocator.solvers.base import without_empty
from allocator.solvers.meetings import meetings
from allocator.solvers.runner import Runner


def roots(problem: Problem) -> Column:
    """Ids of the chunks to place: those that have bytes and overwrite nothing."""
    is_root = problem.size > 0
    is_root[problem.src] = False
    return np.flatnonzero(is_root)


@frozen(eq=False)
class Barriers:
    """The neighbours of each body and the offsets that they bar, as `allocator.kernels.gaps` tells."""

    start: Column = field(converter=column)
    near: Column = field(converter=column)
    low: Column = field(converter=column)
    high: Column = field(converter=column)


@frozen(eq=False)
class Placer:
    """Body i is the chain of chunk ids[i]; orders and offsets are numbers and columns of bodies.

    The kernel has scratch of its own, so one placer serves one thread.
    """

    problem: Problem
    chains: Chains
    ids: Column = field(converter=column)
    size: Column = field(converter=column)
    barriers: Barriers
    runner: Runner
    _numbers: tuple[Numbers, ...]
    _scratch: tuple[Numbers, ...]

    @classmethod
    def of(cls, problem: Problem, runner: Runner | None = None) -> "Placer":
        """Takes memory for each pair of chunks that meet. `runner`: how the kernel runs, if not as suits the size."""
        found, ids = chains(problem), roots(problem)
        size, bars = problem.size[ids], barriers(problem, found, ids)
        run = runner or Runner.of(len(ids))
        columns = (bars.start, bars.near, bars.low, bars.high, size, problem.alignment[ids], problem.pinned[ids])
        most = int(np.diff(bars.start).max(initial=0))
        return cls(problem, found, ids, size, bars, run, run.numbers(*columns), run.zeros(most, most))

    def __len__(self) -> int:
        return len(self.ids)

    def bodies(self, chunks: Column) -> Column:
        """The bodies of these roots."""
        return np.searchsorted(self.ids, chunks)

    def place(self, order: Column) -> Column:
        """Offset of each body, when all are placed in this order, pinned ones first."""
        (numbers,), (offset,) = self.runner.numbers(np.array(order)), self.runner.zeros(len(self))
        self.place_rest(numbers, 0, NO_CAPACITY, offset)
        return np.array(offset, np.int64)

    def place_rest(self, order: Numbers, kept: int, limit: int, offset: Numbers) -> int:
        """Places all but the first `kept` of an order, whose offsets stand in `offset` and stay; gives the arena.

        `order` and `offset` are what `runner` takes: lists, or columns that can be written (both, or the kernel is
        compiled once more). As soon as the arena would be above `limit` it ends, and the rest lies nowhere.
        """
        start, near, low, high, size, alignment, pinned = self._numbers
        floors, ceilings = self._scratch
        return self.runner.kernel(gaps.place)(
            start, near, low, high, size, alignment, pinned, order, kept, limit, offset, floors, ceilings
        )

    def offsets(self, by_body: Column) -> Column:
        """Offsets of all chunks from those of the bodies; 0 for chunks of no bytes."""
        made = np.zeros(len(self.problem), np.int64)
        made[self.ids] = by_body
        return without_empty(self.problem, self.chains.offsets(made))


def barriers(problem: Problem, found: Chains, ids: Column) -> Barriers:
    """Each pair of chunks that meet, seen from the body of either."""
    body = np.zeros(len(problem), np.int64)
    body[ids] = np.arange(len(ids))
    body, low, high = body[found.root], found.offset, found.offset + problem.size
    met = meetings(problem)
    apart = body[met.one] != body[met.other]
    one = np.concatenate((met.one[apart], met.other[apart]))
    other = np.concatenate((met.other[apart], met.one[apart]))
    order = np.argsort(body[one], kind="stable")
    one, other = one[order], other[order]
    start = np.concatenate(([0], np.cumsum(np.bincount(body[one], minlength=len(ids)))))
    return Barriers(start, body[other], low[other] - high[one], high[other] - low[one])
