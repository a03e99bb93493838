import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allocator.freelist import NOBODY, Action, Event, FreeList, Neighbours

MIB = 2**20


def full(*sizes: int) -> FreeList:
    """A free list that holds used blocks 0, 1, ... of these sizes."""
    made = FreeList(events=[])
    for owner, size in enumerate(sizes):
        made.alloc(owner, size)
    return made


def test_without_free_blocks_a_newcomer_goes_to_the_end() -> None:
    blocks = full(8, 4)
    assert blocks.alloc(2, 6) == Neighbours(before=1, behind=NOBODY)
    assert blocks.blocks() == [(0, 8), (1, 4), (2, 6)]


def test_the_smallest_block_that_is_large_enough_is_split() -> None:
    blocks = full(9, 1, 6, 1, 7, 1)
    for owner in (0, 2, 4):
        blocks.free(owner)
    assert blocks.alloc(9, 5) == Neighbours(before=1, behind=3)
    assert blocks.blocks() == [(NOBODY, 9), (1, 1), (9, 5), (NOBODY, 1), (3, 1), (NOBODY, 7), (5, 1)]


def test_of_equal_blocks_the_older_one_is_taken() -> None:
    blocks = full(4, 1, 4, 1)
    blocks.free(2)
    blocks.free(0)
    assert blocks.alloc(9, 4) == Neighbours(before=1, behind=3)


def test_the_largest_block_grows_where_all_are_too_small() -> None:
    blocks = full(2, 1, 6, 1)
    blocks.free(0)
    blocks.free(2)
    assert blocks.alloc(9, 8) == Neighbours(before=1, behind=3)
    assert blocks.blocks() == [(NOBODY, 2), (1, 1), (9, 8), (3, 1)]


def test_a_freed_block_merges_with_both_neighbours() -> None:
    blocks = full(2, 3, 4, 5)
    for owner in (0, 2, 1):
        blocks.free(owner)
    assert blocks.blocks() == [(NOBODY, 9), (3, 5)]


def test_ten_of_twenty_mebibytes_overwritten_at_six_leave_six_and_four_free() -> None:
    blocks = full(20 * MIB)
    assert blocks.alloc_overwrite(0, 6 * MIB, 1, 10 * MIB) == Neighbours(NOBODY, NOBODY)
    assert blocks.blocks() == [(NOBODY, 6 * MIB), (1, 10 * MIB), (NOBODY, 4 * MIB)]


def test_what_an_overwrite_leaves_merges_with_free_neighbours() -> None:
    blocks = full(2, 8, 3)
    blocks.free(0)
    blocks.free(2)
    assert blocks.alloc_overwrite(1, 1, 9, 5) == Neighbours(NOBODY, NOBODY)
    assert blocks.blocks() == [(NOBODY, 3), (9, 5), (NOBODY, 5)]


def test_an_overwrite_outside_its_block_is_refused_and_changes_nothing() -> None:
    blocks = full(8)
    for offset, size in ((-1, 4), (5, 4), (0, 0)):
        with pytest.raises(ValueError, match="are not in a block of 8 bytes"):
            blocks.alloc_overwrite(0, offset, 1, size)
    assert blocks.blocks() == [(0, 8)]
    blocks._check()


def test_events_tell_what_happened_in_order() -> None:
    blocks = full(8, 4)
    blocks.free(0)
    blocks.alloc(2, 3)
    blocks.alloc(3, 9)
    blocks.alloc_overwrite(3, 0, 4, 2)
    assert blocks.events == [
        Event(Action.APPEND, 0, 8),
        Event(Action.APPEND, 1, 4),
        Event(Action.FREE, 0, 8),
        Event(Action.SPLIT, 2, 3),
        Event(Action.GROW, 3, 9),
        Event(Action.OVERWRITE, 4, 2),
    ]


class FreeListMachine(RuleBasedStateMachine):
    """Any sequence of operations keeps the invariants, and the neighbours told are those in the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = FreeList()
        self.used: dict[int, int] = {}
        self.count = 0

    def _enter(self, size: int, near: Neighbours) -> None:
        owner = self.count
        self.used[owner] = size
        self.count += 1
        owners = [o for o, _ in self.blocks.blocks() if o != NOBODY]
        at = owners.index(owner)
        around = [NOBODY, *owners, NOBODY]
        assert near == Neighbours(around[at], around[at + 2])

    @rule(size=st.integers(1, 9))
    def alloc(self, size: int) -> None:
        fitting = [s for o, s in self.blocks.blocks() if o == NOBODY and s >= size]
        before = sum(s for _, s in self.blocks.blocks())
        self._enter(size, self.blocks.alloc(self.count, size))
        if fitting:
            assert sum(s for _, s in self.blocks.blocks()) == before

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(sorted(self.used)))
        self.blocks.free(owner)
        del self.used[owner]

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        dest = data.draw(st.sampled_from(sorted(self.used)))
        size = data.draw(st.integers(1, self.used[dest]))
        offset = data.draw(st.integers(0, self.used.pop(dest) - size))
        total = sum(s for _, s in self.blocks.blocks())
        self._enter(size, self.blocks.alloc_overwrite(dest, offset, self.count, size))
        assert sum(s for _, s in self.blocks.blocks()) == total

    @invariant()
    def all_is_well(self) -> None:
        self.blocks._check()
        assert {o: s for o, s in self.blocks.blocks() if o != NOBODY} == self.used


TestFreeListMachine = FreeListMachine.TestCase
