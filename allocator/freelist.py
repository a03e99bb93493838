"""MegEngine's free-list simulator: it fixes the order of blocks in memory; addresses come later.

The memory queue holds all blocks in address order, the free queue holds the free ones by size. Sizes may still grow, so
a block has no address here.
"""

from enum import StrEnum

from attrs import define, field, frozen
from sortedcontainers import SortedList

NOBODY = -1
"""Owner of a free block; also the neighbour of a block that has none."""
_END = 0
_END_OWNER = -2


class Action(StrEnum):
    """What happened to the memory queue."""

    APPEND = "append"
    SPLIT = "split"
    GROW = "grow"
    OVERWRITE = "overwrite"
    FREE = "free"


@frozen
class Event:
    """One action, for the chunk `owner` of `size` bytes."""

    action: Action
    owner: int
    size: int


@frozen
class Neighbours:
    """Owners of the nearest used blocks before and behind a newcomer, or NOBODY."""

    before: int
    behind: int


@define(eq=False)
class FreeList:
    """Two queues of blocks. O(log n) an operation.

    Invariants: no two free blocks are neighbours; no block is empty; the free queue holds just the free blocks of the
    memory queue, by (size, age). Callers allocate no empty chunks.
    """

    events: list[Event] | None = None
    _size: list[int] = field(factory=lambda: [0], init=False)
    _owner: list[int] = field(factory=lambda: [_END_OWNER], init=False)
    _before: list[int] = field(factory=lambda: [_END], init=False)
    _behind: list[int] = field(factory=lambda: [_END], init=False)
    _free: SortedList = field(factory=SortedList, init=False)
    _block: dict[int, int] = field(factory=dict, init=False)

    def alloc(self, owner: int, size: int) -> Neighbours:
        """Gives `owner` the smallest free block that is large enough, else the largest one, grown, else a new one."""
        if not self._free:
            block, action = self._insert(_END, size, owner), Action.APPEND
        else:
            block, action = self._take_free(owner, size)
        self._block[owner] = block
        self._tell(action, owner, size)
        return self._neighbours(block)

    def free(self, owner: int) -> None:
        """Frees the block of `owner` and merges it with free neighbours."""
        block = self._block.pop(owner)
        size, behind = self._size[block], self._behind[block]
        self._remove(block)
        self._insert_free(behind, size)
        self._tell(Action.FREE, owner, size)

    def alloc_overwrite(self, dest: int, offset: int, owner: int, size: int) -> Neighbours:
        """Passes bytes [offset, offset + size) of dest's block to `owner`; what lies before and behind becomes free."""
        block = self._block[dest]
        rest = self._size[block] - offset - size
        if offset < 0 or size <= 0 or rest < 0:
            raise ValueError(f"bytes [{offset}, {offset + size}) are not in a block of {self._size[block]} bytes")
        self._size[block], self._owner[block] = size, owner
        del self._block[dest]
        self._block[owner] = block
        self._insert_free(block, offset)
        self._insert_free(self._behind[block], rest)
        self._tell(Action.OVERWRITE, owner, size)
        return self._neighbours(block)

    def blocks(self) -> list[tuple[int, int]]:
        """The memory queue: (owner or NOBODY, size in bytes), in address order."""
        found, block = [], self._behind[_END]
        while block != _END:
            found.append((self._owner[block], self._size[block]))
            block = self._behind[block]
        return found

    def _take_free(self, owner: int, size: int) -> tuple[int, Action]:
        place = self._free.bisect_left((size, _END))
        grows = place == len(self._free)
        found, block = self._free.pop(-1 if grows else place)
        self._owner[block], self._size[block] = owner, size
        if found > size:
            self._insert_free(self._behind[block], found - size)
        return block, Action.GROW if grows else Action.SPLIT

    def _insert(self, behind: int, size: int, owner: int) -> int:
        """A block before the block `behind`."""
        block, before = len(self._size), self._before[behind]
        self._size.append(size)
        self._owner.append(owner)
        self._before.append(before)
        self._behind.append(behind)
        self._behind[before] = self._before[behind] = block
        return block

    def _insert_free(self, behind: int, size: int) -> None:
        """Frees `size` bytes before the block `behind`, and merges them with free neighbours."""
        if not size:
            return
        if self._owner[behind] == NOBODY:
            size += self._size[behind]
            behind = self._remove_free(behind)
        before = self._before[behind]
        if self._owner[before] == NOBODY:
            size += self._size[before]
            self._remove_free(before)
        self._free.add((size, self._insert(behind, size, NOBODY)))

    def _remove_free(self, block: int) -> int:
        self._free.remove((self._size[block], block))
        return self._remove(block)

    def _remove(self, block: int) -> int:
        """Takes a block out of the memory queue; gives the block behind it."""
        before, behind = self._before[block], self._behind[block]
        self._behind[before], self._before[behind] = behind, before
        return behind

    def _neighbours(self, block: int) -> Neighbours:
        before, behind = self._before[block], self._behind[block]
        if self._owner[before] == NOBODY:
            before = self._before[before]
        if self._owner[behind] == NOBODY:
            behind = self._behind[behind]
        return Neighbours(max(self._owner[before], NOBODY), max(self._owner[behind], NOBODY))

    def _tell(self, action: Action, owner: int, size: int) -> None:
        if self.events is not None:
            self.events.append(Event(action, owner, size))

    def _check(self) -> None:
        """Asserts every invariant; O(n), for tests."""
        queue, block = [], self._behind[_END]
        while block != _END:
            assert self._behind[self._before[block]] == block == self._before[self._behind[block]]
            assert self._size[block] > 0
            queue.append(block)
            block = self._behind[block]
        free = [b for b in queue if self._owner[b] == NOBODY]
        assert not any(self._owner[b] == NOBODY == self._owner[self._behind[b]] for b in queue)
        assert list(self._free) == sorted((self._size[b], b) for b in free)
        assert self._block == {self._owner[b]: b for b in queue if self._owner[b] != NOBODY}
        assert self._owner[_END] == _END_OWNER
        assert self._size[_END] == 0
