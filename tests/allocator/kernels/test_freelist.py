"""The kernel of the free list, case by case, and event by event against the readable simulation."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allocator.kernels.freelist import (
    END,
    NO_CHUNK,
    OWNER,
    SIZE,
    WIDTH,
    alloc,
    clear,
    order_blocks,
    overwrite,
    release,
    used_before,
    used_behind,
)
from allocator.kernels.numbers import Numbers
from allocator.kernels.treap import BEFORE, BEHIND, HASH, LEFT, RIGHT, TIE
from allocator.machine_code.arrays import compiled
from allocator.solvers.free_list import Alloc, Free, Overwrite, simulate
from allocator.solvers.free_list import FreeList as Simulated
from allocator.solvers.placing.timeline import Timeline, timeline_by_id
from tests.helpers.allocator.megengine_problems import megengine_problem

MIB = 2**20


class FreeList:
    """The simulator with its state, and a check of all invariants after each step."""

    def __init__(self, *sizes: int) -> None:
        """Begins with used blocks 0, 1, ... of these sizes."""
        self.blocks: Numbers = [0] * (WIDTH * 256)
        self.held: dict[int, int] = {}
        clear(self.blocks)
        for owner, size in enumerate(sizes):
            self.alloc(owner, size)

    def alloc(self, owner: int, size: int) -> tuple[int, int]:
        self.held[owner] = alloc(self.blocks, owner, size)
        return self.neighbours(owner)

    def free(self, *owners: int) -> None:
        for owner in owners:
            release(self.blocks, self.held.pop(owner))

    def overwrite(self, dest: int, offset: int, owner: int, size: int) -> tuple[int, int]:
        self.held[owner] = self.held.pop(dest)
        overwrite(self.blocks, self.held[owner], offset, owner, size)
        return self.neighbours(owner)

    def neighbours(self, owner: int) -> tuple[int, int]:
        return used_before(self.blocks, self.held[owner]), used_behind(self.blocks, self.held[owner])

    def memory(self) -> list[tuple[int, int]]:
        """Returns (owner or NO_CHUNK, size) in address order."""
        return [(self.blocks[b + OWNER], self.blocks[b + SIZE]) for b in self.ring()]

    def ring(self) -> list[int]:
        result, block = [], self.blocks[END + BEHIND]
        while block != END:
            assert self.blocks[self.blocks[block + BEFORE] + BEHIND] == block
            assert self.blocks[self.blocks[block + BEHIND] + BEFORE] == block
            result.append(block)
            block = self.blocks[block + BEHIND]
        return result

    def queue(self, block: int, priority: int) -> list[int]:
        """Returns the blocks of the free queue below a node, in order; none has a greater priority than its parent."""
        if not block:
            return []
        own = self.blocks[block + HASH]
        assert own <= priority
        lower = self.queue(self.blocks[block + LEFT], own)
        return [*lower, block, *self.queue(self.blocks[block + RIGHT], own)]

    def check(self) -> None:
        ring = self.ring()
        free = [b for b in ring if self.blocks[b + OWNER] == NO_CHUNK]
        assert all(self.blocks[b + SIZE] > 0 for b in ring)
        assert not any(one in free and other in free for one, other in pairwise(ring))
        in_order = sorted(free, key=lambda b: (self.blocks[b + SIZE], self.blocks[b + TIE]))
        assert self.queue(self.blocks[END + LEFT], 2**31) == in_order
        assert {self.blocks[b + OWNER]: b for b in ring if b not in free} == self.held


def test_without_free_blocks_a_new_block_goes_to_the_end() -> None:
    blocks = FreeList(8, 4)
    assert blocks.alloc(2, 6) == (1, NO_CHUNK)
    assert blocks.memory() == [(0, 8), (1, 4), (2, 6)]


def test_the_smallest_block_that_is_large_enough_is_split() -> None:
    blocks = FreeList(9, 1, 6, 1, 7, 1)
    blocks.free(0, 2, 4)
    assert blocks.alloc(9, 5) == (1, 3)
    assert blocks.memory() == [(NO_CHUNK, 9), (1, 1), (9, 5), (NO_CHUNK, 1), (3, 1), (NO_CHUNK, 7), (5, 1)]


def test_a_block_of_just_the_right_size_leaves_nothing_over() -> None:
    blocks = FreeList(4, 1)
    blocks.free(0)
    assert blocks.alloc(9, 4) == (NO_CHUNK, 1)
    assert blocks.memory() == [(9, 4), (1, 1)]


def test_of_equal_blocks_the_older_one_is_taken() -> None:
    blocks = FreeList(4, 1, 4, 1)
    blocks.free(2, 0)
    assert blocks.alloc(9, 4) == (1, 3)


def test_the_largest_block_grows_where_all_are_too_small() -> None:
    blocks = FreeList(2, 1, 6, 1)
    blocks.free(0, 2)
    assert blocks.alloc(9, 8) == (1, 3)
    assert blocks.memory() == [(NO_CHUNK, 2), (1, 1), (9, 8), (3, 1)]


def test_a_freed_block_between_used_ones_stays_alone() -> None:
    blocks = FreeList(2, 3, 4)
    blocks.free(1)
    assert blocks.memory() == [(0, 2), (NO_CHUNK, 3), (2, 4)]


def test_a_freed_block_merges_with_a_free_neighbour_on_either_side() -> None:
    below, above = FreeList(2, 3, 4), FreeList(2, 3, 4)
    below.free(0, 1)
    above.free(2, 1)
    assert below.memory() == [(NO_CHUNK, 5), (2, 4)]
    assert above.memory() == [(0, 2), (NO_CHUNK, 7)]


def test_a_freed_block_merges_with_both_neighbours() -> None:
    blocks = FreeList(2, 3, 4, 5)
    blocks.free(0, 2, 1)
    assert blocks.memory() == [(NO_CHUNK, 9), (3, 5)]


def test_ten_of_twenty_mebibytes_overwritten_at_six_leave_six_and_four_free() -> None:
    blocks = FreeList(20 * MIB)
    assert blocks.overwrite(0, 6 * MIB, 1, 10 * MIB) == (NO_CHUNK, NO_CHUNK)
    assert blocks.memory() == [(NO_CHUNK, 6 * MIB), (1, 10 * MIB), (NO_CHUNK, 4 * MIB)]


def test_an_overwrite_of_all_bytes_passes_the_block_on() -> None:
    blocks = FreeList(5, 3, 2)
    assert blocks.overwrite(1, 0, 9, 3) == (0, 2)
    assert blocks.memory() == [(0, 5), (9, 3), (2, 2)]


def test_bytes_that_an_overwrite_leaves_merge_with_free_neighbours() -> None:
    blocks = FreeList(2, 8, 3)
    blocks.free(0, 2)
    assert blocks.overwrite(1, 1, 9, 5) == (NO_CHUNK, NO_CHUNK)
    assert blocks.memory() == [(NO_CHUNK, 3), (9, 5), (NO_CHUNK, 5)]


class FreeListMachine(RuleBasedStateMachine):
    """A machine of random operations, after each of which the kernel and the readable simulation agree."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks, self.model = FreeList(), Simulated()
        self.used: dict[int, int] = {}
        self.count = 0

    def _enter(self, event: Alloc | Overwrite, near: tuple[int, int]) -> None:
        assert near == (event.below, event.above)
        self.used[self.count] = event.size
        self.count += 1

    @rule(size=st.integers(1, 9))
    def alloc(self, size: int) -> None:
        self._enter(self.model.alloc(0, self.count, size), self.blocks.alloc(self.count, size))

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(sorted(self.used)))
        self.model.free(0, owner)
        self.blocks.free(owner)
        del self.used[owner]

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        dest = data.draw(st.sampled_from(sorted(self.used)))
        size = data.draw(st.integers(1, self.used[dest]))
        offset = data.draw(st.integers(0, self.used.pop(dest) - size))
        event = self.model.overwrite(0, self.count, size, dest, offset)
        self._enter(event, self.blocks.overwrite(dest, offset, self.count, size))

    @invariant()
    def all_is_well(self) -> None:
        self.blocks.check()
        assert self.blocks.memory() == list(self.model.memory())


TestFreeListMachine = FreeListMachine.TestCase


def after(line: Timeline, rows: int) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Runs the compiled kernel on the first rows. Returns the memory queue (of chunks), and used neighbours by row."""
    columns = [c[:rows] for c in (line.begin, line.end, line.size, line.root, line.dest, line.at)]
    memory, lower, upper = FreeList(), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    memory.blocks = np.zeros(WIDTH * (2 * rows + 2), np.int64)
    compiled(order_blocks)(
        *map(np.ascontiguousarray, columns),
        np.ascontiguousarray(line.freed[line.freed < rows]),
        memory.blocks, np.zeros(rows, np.int64), lower, upper, np.zeros(rows + 1, np.int64),
    )  # fmt: skip
    chunk = {NO_CHUNK: NO_CHUNK} | dict(enumerate(line.ids.tolist()))
    return [(chunk[owner], size) for owner, size in memory.memory()], lower.tolist(), upper.tolist()


@given(st.integers(0, 2**32), st.sampled_from((0, 7)))
@settings(max_examples=10)
def test_the_compiled_kernel_does_what_the_simulation_tells_event_by_event(seed: int, padding: int) -> None:
    """After each chunk that begins: frees in between show in the memory queue, too."""
    line = timeline_by_id(megengine_problem(seed, 30, padding=padding))
    memory, rows = Simulated(), 0
    for event in simulate(line, memory):
        if isinstance(event, Free):
            continue
        rows += 1
        blocks, lower, upper = after(line, rows)
        assert blocks == list(memory.memory())
        if isinstance(event, Alloc):
            chunk = {NO_CHUNK: NO_CHUNK} | dict(enumerate(line.ids.tolist()))
            assert (chunk[lower[-1]], chunk[upper[-1]]) == (event.below, event.above)
