"""MegEngine's push-down: a free-list simulation orders the blocks, then every chain sinks as low as that order lets it.

(MegEngine's static memory planning, steps 5 and 6.)
"""

from collections.abc import Iterator
from typing import Self

import numpy as np
from attrs import define, frozen

from allocator.chains import chains
from allocator.freelist import NOBODY, FreeList
from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, Task, Traits, align_up, without_empty

_FREE, _ALLOC, _OVERWRITE = range(3)


@frozen(eq=False)
class Pushdown:
    """O(n log n). The order of the blocks is found before any address is, so offsets cannot be pinned."""

    name: str = "pushdown"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _task: Task) -> Answer:
        """Offsets, and no bound."""
        found = chains(problem)
        order = _simulate(problem, found.root.tolist())
        return Answer(without_empty(problem, found.offsets(_push_down(problem, found.root, found.offset, order))))


PUSHDOWN = Pushdown()


@define(eq=False)
class _Order:
    """Used neighbours of each chunk when it was allocated, and all roots from the lowest to the highest.

    A newcomer goes right behind the root of its neighbour below. Chains that are alive together then stand in `behind`
    as they stand in memory, so one sweep along it meets every chunk after all that lie below it.
    """

    lower: list[int]
    upper: list[int]
    behind: list[int]
    first: int = NOBODY

    @classmethod
    def of(cls, count: int) -> Self:
        """Of nobody yet, for `count` chunks."""
        return cls([NOBODY] * count, [NOBODY] * count, [NOBODY] * count)

    def enter(self, chunk: int, lower: int, upper: int, lower_root: int) -> None:
        """Records a newcomer between two chunks, either of which may be NOBODY."""
        self.lower[chunk], self.upper[chunk] = lower, upper
        if lower_root == NOBODY:
            self.behind[chunk], self.first = self.first, chunk
        else:
            self.behind[chunk], self.behind[lower_root] = self.behind[lower_root], chunk

    def sweep(self) -> Iterator[int]:
        """All roots, lowest first."""
        root = self.first
        while root != NOBODY:
            yield root
            root = self.behind[root]


def _simulate(problem: Problem, root: list[int]) -> _Order:
    """Runs the free list: in each tick first what ends, then what begins, then what overwrites."""
    blocks, size = FreeList(), problem.size.tolist()
    order = _Order.of(len(problem))
    dest = dict(zip(problem.src.tolist(), problem.dest.tolist(), strict=True))
    offset = dict(zip(problem.src.tolist(), problem.overwrite_offset.tolist(), strict=True))
    for action, chunk in zip(*_events(problem), strict=True):
        if action == _FREE:
            blocks.free(chunk)
        elif action == _OVERWRITE:
            blocks.alloc_overwrite(dest[chunk], offset[chunk], chunk, size[chunk])
        else:
            near = blocks.alloc(chunk, size[chunk])
            order.enter(chunk, near.before, near.behind, root[near.before] if near.before != NOBODY else NOBODY)
    return order


def _events(problem: Problem) -> tuple[list[int], list[int]]:
    """(action, chunk), in the order of tick, action and id. Chunks of no bytes take no part."""
    used = problem.size > 0
    taken = used[problem.src]
    begins = np.where(used, _ALLOC, -1)
    begins[problem.src[taken]] = _OVERWRITE
    is_freed = used.copy()
    is_freed[problem.dest[taken]] = False
    starts, ends = np.flatnonzero(used), np.flatnonzero(is_freed)
    chunk = np.concatenate((starts, ends))
    tick = np.concatenate((problem.begin[starts], problem.end[ends]))
    action = np.concatenate((begins[starts], np.full(len(ends), _FREE)))
    order = np.lexsort((chunk, action, tick))
    return action[order].tolist(), chunk[order].tolist()


def _push_down(problem: Problem, root: Column, offset: Column, order: _Order) -> Column:
    """Offsets of the roots: each above what was below it when it came, and above newcomers that slid in below it since.

    `floor[r]` is the lowest address that root r may take; a chunk that slid in below a member pushes the whole chain.
    """
    size, alignment = problem.size.tolist(), problem.alignment.tolist()
    root_of, offset_in = root.tolist(), offset.tolist()
    floor = [0] * len(problem)
    for chunk in order.sweep():
        lower, upper = order.lower[chunk], order.upper[chunk]
        least = floor[chunk]
        if lower != NOBODY:
            least = max(least, floor[root_of[lower]] + offset_in[lower] + size[lower])
        floor[chunk] = align_up(least, alignment[chunk])
        if upper != NOBODY:
            above = root_of[upper]
            floor[above] = max(floor[above], floor[chunk] + size[chunk] - offset_in[upper])
    return np.array(floor, np.int64)
