"""Plain models of heaps, lists of blocks that are searched from end to end, and a checker of runs."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from attrs import define, field, frozen
from hypothesis import strategies as st

from allocator.heaps import events as asked
from allocator.heaps.events import ALLOC, Events
from allocator.heaps.simulated import NEVER, NOWHERE, Simulated

KIB, MIB = 1 << 10, 1 << 20


@st.composite
def streams(draw: st.DrawFn, sizes: st.SearchStrategy[int], most: int = 40) -> Events:
    """Draws allocations and frees in any order; some ids are never freed."""
    size: list[int] = []
    live: list[int] = []
    events: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(0, most))):
        if live and draw(st.integers(0, 99)) < 45:
            events.append((live.pop(draw(st.integers(0, len(live) - 1))), asked.FREE))
        else:
            events.append((len(size), ALLOC))
            live.append(len(size))
            size.append(draw(sizes))
    return Events(range(len(events)), [i for i, _ in events], [s for _, s in events], size)


def thrown(rng: np.random.Generator, count: int, sizes: Callable[[np.random.Generator], int], life: int) -> Events:
    """Returns events of `count` ids in the order of their begin; about `life` live at once."""
    begin = np.arange(count, dtype=np.int64)
    size = np.array([sizes(rng) for _ in range(count)], np.int64)
    return asked.of_lifetimes(begin, begin + 1 + rng.geometric(1 / life, count), size)


@define
class Block:
    """The bytes [at, at + size), which are free if `owner` is NOWHERE."""

    at: int
    size: int
    owner: int = NOWHERE

    @property
    def is_free(self) -> bool:
        return self.owner == NOWHERE


@define
class Region:
    """A list of blocks without gaps, in the order of their addresses."""

    blocks: list[Block]
    pool: int = 0

    @property
    def size(self) -> int:
        return sum(b.size for b in self.blocks)

    def give(self, block: Block, size: int, owner: int, split: bool) -> None:
        block.owner = owner
        if split and block.size > size:
            rest = Block(block.at + size, block.size - size)
            block.size = size
            self.blocks.insert(self.blocks.index(block) + 1, rest)

    def join(self) -> None:
        """Joins free neighbours."""
        k = 0
        while k + 1 < len(self.blocks):
            one, other = self.blocks[k : k + 2]
            if one.is_free and other.is_free:
                one.size += other.size
                del self.blocks[k + 1]
            else:
                k += 1


@define
class Model:
    """A heap of regions, which lie at `bases` and then, or without bases, each above the last one."""

    capacity: int = 2**62
    bases: Sequence[int] = ()
    regions: list[Region] = field(factory=list)
    count: int = 0
    end: int = 0

    @abstractmethod
    def rounded(self, size: int) -> int:
        """Returns the bytes that a request takes."""

    @abstractmethod
    def grow(self, size: int) -> bool:
        """Gets `size` bytes from the system; returns whether it could."""

    @abstractmethod
    def should_split(self, block: Block, size: int) -> bool:
        """Returns whether to split a block."""

    def pool_of(self, size: int) -> int:
        return 0 * size

    def key(self, block: Block) -> tuple[int, ...]:
        """Returns the key of a block: of those that are large enough, the one with the least key is taken."""
        return block.size, block.at

    @property
    def reserved(self) -> int:
        return sum(r.size for r in self.regions)

    def add_region(self, size: int, pool: int = 0) -> bool:
        at = self.bases[self.count] if self.bases else self.end
        self.regions.append(Region([Block(at, size)], pool))
        self.count, self.end = self.count + 1, at + size
        return True

    def give_back_unused(self) -> None:
        self.regions = [r for r in self.regions if any(not b.is_free for b in r.blocks)]

    def find(self, size: int) -> tuple[Block, Region] | None:
        pool = self.pool_of(size)
        fitting = [(b, r) for r in self.regions if r.pool == pool for b in r.blocks if b.is_free and b.size >= size]
        return min(fitting, key=lambda result: self.key(result[0])) if fitting else None

    def alloc(self, owner: int, requested: int) -> Block | None:
        """Returns the block that it allocates, or None if memory is exhausted."""
        size = self.rounded(requested)
        result = self.find(size)
        if result is None:
            if not self.grow(size):
                return None
            result = self.find(size)
        assert result is not None
        block, region = result
        region.give(block, size, owner, self.should_split(block, size))
        return block

    def free(self, owner: int) -> None:
        for region in self.regions:
            for block in region.blocks:
                if block.owner == owner:
                    block.owner = NOWHERE
            region.join()


@define
class GrowingModel(Model):
    """First fit and best fit in one region."""

    is_first: bool = False
    rounding: int = 64

    def rounded(self, size: int) -> int:
        return -(-size // self.rounding) * self.rounding

    def key(self, block: Block) -> tuple[int, ...]:
        return (block.at,) if self.is_first else (block.size, block.at)

    def grow(self, size: int) -> bool:
        if not self.regions:
            self.regions = [Region([])]
        blocks = self.regions[0].blocks
        if not blocks or not blocks[-1].is_free:
            blocks.append(Block(self.reserved, 0))
        missing = size - blocks[-1].size
        blocks[-1].size = size
        return self.reserved <= self.capacity or missing == 0

    def should_split(self, block: Block, size: int) -> bool:
        return block.size > size


@define
class PyTorchModel(Model):
    """CUDACachingAllocator.cpp, rule by rule."""

    def rounded(self, size: int) -> int:
        return max(512, -(-size // 512) * 512)

    def pool_of(self, size: int) -> int:
        return 0 if size <= MIB else 1

    def grow(self, size: int) -> bool:
        segment = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + segment > self.capacity:
            self.give_back_unused()
        if self.reserved + segment > self.capacity:
            return False
        return self.add_region(segment, self.pool_of(size))

    def should_split(self, block: Block, size: int) -> bool:
        return block.size - size >= 512 if size <= MIB else block.size - size > MIB


@define
class BfcModel(Model):
    """The BFC arenas, with their bins."""

    region: int = 0
    max_region: int = 2**62
    max_dead: int = 128 * MIB
    same_as_requested: bool = False
    collects: bool = False

    def rounded(self, size: int) -> int:
        return -(-size // 256) * 256

    @staticmethod
    def bin_of(size: int) -> int:
        return min(20, (max(size, 256) >> 8).bit_length() - 1)

    def find(self, size: int) -> tuple[Block, Region] | None:
        for number in range(self.bin_of(size), 21):
            chunks = [(b, r) for r in self.regions for b in r.blocks if b.is_free and self.bin_of(b.size) == number]
            for block, region in sorted(chunks, key=lambda c: (c[0].size, c[0].at)):
                if block.size >= size:
                    return block, region
        return None

    def grow(self, size: int) -> bool:
        if self._extend(size):
            return True
        unused = sum(r.size for r in self.regions if all(b.is_free for b in r.blocks))
        if not self.collects or not unused or size > self.capacity - self.reserved + unused:
            return False
        self.give_back_unused()
        return self._extend(size)

    def _extend(self, size: int) -> bool:
        available = (self.capacity - self.reserved) // 256 * 256
        if size > available:
            return False
        if self.same_as_requested:
            return self.add_region(size)
        increased = False
        while size > self.region:
            self.region *= 2
            increased = True
        got = min(self.region, available)
        if not increased:
            self.region = self.region * 2 if self.region * 2 < self.max_region else self.max_region
        return self.add_region(got)

    def should_split(self, block: Block, size: int) -> bool:
        return block.size >= 2 * size or block.size - size >= self.max_dead


@define
class BuddyModel:
    """A list of free blocks; the one that was freed last is at its end."""

    smallest: int
    growth: int
    end: int = 0
    free_blocks: list[tuple[int, int]] = field(factory=list)
    used: dict[int, tuple[int, int]] = field(factory=dict)

    def alloc(self, owner: int, requested: int) -> Block:
        size = self.smallest
        while size < requested:
            size *= 2
        while not any(s >= size for _, s in self.free_blocks):
            piece = max(size, self.growth)
            while self.end % piece:
                piece //= 2
            self.end += piece
            self._put(self.end - piece, piece)
        least = min(s for _, s in self.free_blocks if s >= size)
        at, whole = [b for b in self.free_blocks if b[1] == least][-1]
        self.free_blocks.remove((at, whole))
        while whole > size:
            whole //= 2
            self.free_blocks.append((at + whole, whole))
        self.used[owner] = at, size
        return Block(at, size, owner)

    def free(self, owner: int) -> None:
        self._put(*self.used.pop(owner))

    @property
    def reserved(self) -> int:
        return self.end

    def _put(self, at: int, size: int) -> None:
        buddy = (at + size if at % (2 * size) == 0 else at - size, size)
        if buddy in self.free_blocks:
            self.free_blocks.remove(buddy)
            self._put(min(at, buddy[0]), 2 * size)
        else:
            self.free_blocks.append((at, size))


@frozen
class Outcome:
    """Results of a model: (offset, taken) of each id, reserved bytes after each event, and the event that failed."""

    places: dict[int, tuple[int, int]]
    reserved: list[int]
    failed: int


def run_model(model: Model | BuddyModel, events: Events) -> Outcome:
    """Runs all events, or up to the first that fails, whose number is `failed`, else NEVER."""
    places, reserved = dict[int, tuple[int, int]](), list[int]()
    for row, (one, sign) in enumerate(zip(events.id.tolist(), events.sign.tolist(), strict=True)):
        if events.size[one] and sign == ALLOC:
            block = model.alloc(one, int(events.size[one]))
            if block is None:
                return Outcome(places, reserved, row)
            places[one] = block.at, block.size
        elif events.size[one]:
            model.free(one)
        reserved.append(model.reserved)
    return Outcome(places, reserved, NEVER)


def same_as_model(got: Simulated, model: Model | BuddyModel, events: Events) -> None:
    """Fails where a simulated heap differs from its plain model."""
    wanted = run_model(model, events)
    assert wanted.failed == NEVER
    places = zip(got.offset.tolist(), got.taken.tolist(), strict=True)
    assert {one: p for one, p in enumerate(places) if p[0] != NOWHERE} == wanted.places
    assert got.timeline.reserved.tolist() == wanted.reserved


def judge(events: Events, got: Simulated, alignment: int, *, is_one: bool = False, joins_all: bool = True) -> None:
    """Fails unless live blocks share no byte, are aligned, large enough and inside reserved bytes, and counts hold.

    `is_one`: adjacent segments are one. `joins_all`: there is at most one free block between two used ones.
    """
    live: dict[int, tuple[int, int]] = {}
    line = got.timeline
    assert line.tick.tolist() == events.tick.tolist()
    for row, (one, sign) in enumerate(zip(events.id.tolist(), events.sign.tolist(), strict=True)):
        size, place = int(events.size[one]), (int(got.offset[one]), int(got.taken[one]))
        if not size:
            assert place == (NOWHERE, NOWHERE)
        elif sign == ALLOC:
            assert place[0] % alignment == 0 and place[1] >= size, "a block is not aligned or too small"
            live[one] = place
        else:
            del live[one]
        held = _segments(got, row, is_one)
        gaps = _gaps(held, sorted(live.values()))
        assert line.live[row] == sum(int(events.size[i]) for i in live)
        assert line.used[row] == sum(s for _, s in live.values())
        assert line.reserved[row] == sum(s for _, s in held) >= line.used[row]
        assert (
            line.largest_free[row] == max(gaps, default=0)
            if joins_all
            else line.largest_free[row] <= max(gaps, default=0)
        )
    called = [s for i, s in zip(events.id.tolist(), events.sign.tolist(), strict=True) if events.size[i]]
    assert (got.calls.alloc, got.calls.free) == (called.count(ALLOC), called.count(asked.FREE))
    assert got.calls.segment_alloc == len(got.segments.base)
    assert got.calls.segment_free == np.count_nonzero(got.segments.end != NEVER)
    assert got.peak_requested <= got.peak_used <= got.peak_reserved


def _segments(got: Simulated, row: int, is_one: bool) -> list[tuple[int, int]]:
    """Returns (base, size) of the segments that are held after an event."""
    s = got.segments
    held = (s.begin <= row) & ((s.end == NEVER) | (s.end > row))
    result = list[tuple[int, int]]()
    for base, size in sorted(zip(s.base[held].tolist(), s.size[held].tolist(), strict=True)):
        if result and sum(result[-1]) >= base:
            assert sum(result[-1]) == base, "two segments share bytes"
            if is_one:
                result[-1] = result[-1][0], result[-1][1] + size
                continue
        result.append((base, size))
    return result


def _gaps(held: list[tuple[int, int]], live: list[tuple[int, int]]) -> list[int]:
    """Returns the free bytes between used blocks, in each segment. Fails where blocks overlap or lie outside."""
    for (low, size), (high, _) in pairwise(live):
        assert low + size <= high, "two live blocks share bytes"
    gaps, left = [0], list(live)
    for base, size in held:
        at, end = base, base + size
        while left and left[0][0] < end:
            block, taken = left.pop(0)
            assert block >= at and block + taken <= end, "a live block lies outside of what is reserved"
            gaps.append(block - at)
            at = block + taken
        gaps.append(end - at)
    assert not left, "a live block lies behind all that is reserved"
    return gaps
