"""MegEngine's free-list simulation, for people: which chunk lies below which, before any of them has an address.

The *memory queue* holds all blocks from low to high; of two neighbours at most one is free. The *free queue* holds the
free blocks by size. As no block has an address yet, a free block that is too small may grow. What happens is told as
events, and addresses follow from them: `push_down`. The strategies run the same simulation as a compiled kernel,
`allocator.kernels.freelist`.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from graphlib import TopologicalSorter

from attrs import define, field, frozen
from sortedcontainers import SortedKeyList

from allocator.kernels.freelist import NO_CHUNK
from allocator.problem import Column, Problem, align_up, column
from allocator.solvers.placing.timeline import Timeline


class Source(StrEnum):
    """Where a chunk gets its block from."""

    END = "end"
    """No block is free: a new one, behind all others."""
    FIT = "fit"
    """The smallest free block that is large enough; what is left over stays free."""
    GROW = "grow"
    """All free blocks are too small: the largest of them grows."""


@frozen
class Alloc:
    """A chunk begins in a free block of `available` bytes, of which `rest` stay free.

    `below` and `above` are the nearest used chunks (or NO_CHUNK): the address of the chunk must lie between theirs.
    """

    tick: int
    chunk: int
    size: int
    source: Source
    available: int
    rest: int
    below: int
    above: int


@frozen
class Overwrite:
    """A chunk takes bytes of `dest`, which ends; the bytes `before` and `behind` them become free."""

    tick: int
    chunk: int
    size: int
    dest: int
    before: int
    behind: int
    below: int
    above: int


@frozen
class Free:
    """A chunk ends; its block is merged with free neighbours of `left` and `right` bytes (0: that one is not free)."""

    tick: int
    chunk: int
    size: int
    left: int
    right: int


Event = Alloc | Overwrite | Free


@define(eq=False)
class Block:
    """A block of the memory queue. `age` grows from one free block to the next; of equal ones the lower is taken."""

    chunk: int = NO_CHUNK
    size: int = 0
    age: int = 0
    before: "Block" = field(init=False)
    behind: "Block" = field(init=False)

    @property
    def is_free(self) -> bool:
        """True if no chunk has it. The block that closes the queue is not free: it has no bytes."""
        return self.chunk == NO_CHUNK and self.size > 0

    def link(self, behind: "Block") -> None:
        """Enters the memory queue before another block."""
        self.before, self.behind = behind.before, behind
        self.before.behind = behind.before = self

    def unlink(self) -> None:
        """Leaves the memory queue."""
        self.before.behind, self.behind.before = self.behind, self.before


def _ends() -> Block:
    """Returns the block that closes an empty memory queue to a ring."""
    block = Block()
    block.before = block.behind = block
    return block


@define(eq=False)
class FreeList:
    """The memory queue, the free queue, and the block of each chunk that is alive."""

    ends: Block = field(factory=_ends)
    free_blocks: SortedKeyList = field(factory=lambda: SortedKeyList(key=lambda block: (block.size, block.age)))
    held: dict[int, Block] = field(factory=dict)
    youngest: int = 0

    def alloc(self, tick: int, chunk: int, size: int) -> Alloc:
        """Gives a chunk the smallest free block that is large enough, else the largest, else a new one."""
        source, block = self._find(size)
        available, rest = block.size, max(block.size - size, 0)
        self._use(block, chunk, size)
        self._put_free(rest, block.behind)
        return Alloc(tick, chunk, size, source, available, rest, *_neighbours(block))

    def overwrite(self, tick: int, chunk: int, size: int, dest: int, at: int) -> Overwrite:
        """Gives a chunk the bytes of `dest` from `at` on, and frees the others."""
        block = self.held.pop(dest)
        behind = block.size - at - size
        self._use(block, chunk, size)
        self._put_free(at, block)
        self._put_free(behind, block.behind)
        return Overwrite(tick, chunk, size, dest, at, behind, *_neighbours(block))

    def free(self, tick: int, chunk: int) -> Free:
        """Frees the block of a chunk."""
        block = self.held.pop(chunk)
        block.unlink()
        left, right = self._put_free(block.size, block.behind)
        return Free(tick, chunk, block.size, left, right)

    def memory(self) -> tuple[tuple[int, int], ...]:
        """Returns the chunk (or NO_CHUNK) and the bytes of each block, from low to high."""
        blocks, block = [], self.ends.behind
        while block is not self.ends:
            blocks.append((block.chunk, block.size))
            block = block.behind
        return tuple(blocks)

    def _find(self, size: int) -> tuple[Source, Block]:
        """Takes a block for `size` bytes out of the free queue; where that is empty, makes one of no bytes."""
        if not self.free_blocks:
            block = Block()
            block.link(self.ends)
            return Source.END, block
        at = self.free_blocks.bisect_key_left((size, 0))
        if at < len(self.free_blocks):
            return Source.FIT, self.free_blocks.pop(at)
        return Source.GROW, self.free_blocks.pop()

    def _use(self, block: Block, chunk: int, size: int) -> None:
        block.chunk, block.size = chunk, size
        self.held[chunk] = block

    def _put_free(self, size: int, behind: Block) -> tuple[int, int]:
        """Puts free bytes before a block, in one block with free neighbours. Returns the bytes of these."""
        if not size:
            return 0, 0
        above = behind.behind if behind.is_free else behind
        left, right = self._take(behind.before), self._take(behind)
        self.youngest += 1
        block = Block(NO_CHUNK, left + size + right, self.youngest)
        block.link(above)
        self.free_blocks.add(block)
        return left, right

    def _take(self, block: Block) -> int:
        """Takes a block out of both queues if it is free. Returns its bytes, else 0."""
        if not block.is_free:
            return 0
        self.free_blocks.remove(block)
        block.unlink()
        return block.size


def _neighbours(block: Block) -> tuple[int, int]:
    """Returns the nearest used chunks below and above; the neighbours of a free block are used."""
    below, above = block.before, block.behind
    return (below.before if below.is_free else below).chunk, (above.behind if above.is_free else above).chunk


def simulate(line: Timeline, memory: FreeList) -> Iterator[Event]:
    """Yields what happens to each chunk. In a tick, chunks are freed first, then begun, then overwritten."""
    begin, end, size, ids = line.begin.tolist(), line.end.tolist(), line.size.tolist(), line.ids.tolist()
    dest, at, ending = line.dest.tolist(), line.at.tolist(), line.freed.tolist()[::-1]
    for row, tick in enumerate(begin):
        while ending and end[ending[-1]] <= tick:
            yield memory.free(end[ending[-1]], ids[ending.pop()])
        if dest[row] == NO_CHUNK:
            yield memory.alloc(tick, ids[row], size[row])
        else:
            yield memory.overwrite(tick, ids[row], size[row], ids[dest[row]], at[row])
    while ending:
        yield memory.free(end[ending[-1]], ids[ending.pop()])


def push_down(problem: Problem, events: Iterable[Event]) -> Column:
    """Returns the offsets: each chain as low as those chunks allow that the events tell below its members."""
    root, inner, size = (c.tolist() for c in (problem.chains.root, problem.chains.offset, problem.size))
    below: dict[int, set[tuple[int, int]]] = {chain: set() for chain in root}
    for event in events:
        for low, high in () if isinstance(event, Free) else ((event.below, event.chunk), (event.chunk, event.above)):
            if NO_CHUNK not in (low, high):
                below[root[high]].add((low, high))
    first: dict[int, int] = {}
    waits = {chain: {root[low] for low, _ in pairs} for chain, pairs in below.items()}
    for chain in TopologicalSorter(waits).static_order():
        least = (first[root[low]] + inner[low] + size[low] - inner[high] for low, high in below[chain])
        first[chain] = align_up(max((0, *least)), int(problem.alignment[chain]))
    return column([first[root[c]] + inner[c] if size[c] else 0 for c in range(len(problem))])
