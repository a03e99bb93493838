"""The free-list simulator again, as a plain list of blocks: too simple to be wrong, too slow for use."""

from attrs import define, field

from allocator.kernels.freelist import NO_CHUNK


@define
class Block:
    """A block: its owner (NO_CHUNK if it is free), its bytes, and when it was freed."""

    owner: int
    size: int
    freed: int = 0


@define
class MemoryModel:
    """A list of blocks in address order."""

    blocks: list[Block] = field(factory=list)
    clock: int = 0

    def owned_by(self, owner: int) -> int:
        return [b.owner for b in self.blocks].index(owner)

    def alloc(self, owner: int, size: int) -> None:
        free = sorted((b.size, b.freed, at) for at, b in enumerate(self.blocks) if b.owner == NO_CHUNK)
        fitting = [f for f in free if f[0] >= size]
        if not free:
            self.blocks.append(Block(owner, size))
            return
        bytes_there, _, at = fitting[0] if fitting else free[-1]
        self.blocks[at] = Block(owner, size)
        self.put_free(at + 1, bytes_there - size)

    def free(self, owner: int) -> None:
        at = self.owned_by(owner)
        self.put_free(at, self.blocks.pop(at).size)

    def overwrite(self, dest: int, offset: int, owner: int, size: int) -> None:
        at = self.owned_by(dest)
        rest = self.blocks[at].size - offset - size
        self.blocks[at] = Block(owner, size)
        self.put_free(at, offset)
        self.put_free(self.owned_by(owner) + 1, rest)

    def put_free(self, at: int, size: int) -> None:
        if size <= 0:
            return
        self.clock += 1
        for near in (at, at - 1):
            if 0 <= near < len(self.blocks) and self.blocks[near].owner == NO_CHUNK:
                size += self.blocks.pop(near).size
                at = near
        self.blocks.insert(at, Block(NO_CHUNK, size, self.clock))

    def neighbours(self, owner: int) -> tuple[int, int]:
        """Returns the owners of the nearest used blocks before and behind, or NO_CHUNK."""
        used = [NO_CHUNK, *(b.owner for b in self.blocks if b.owner != NO_CHUNK), NO_CHUNK]
        at = used.index(owner, 1)
        return used[at - 1], used[at + 1]
