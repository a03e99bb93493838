"""MegEngine's free-list simulator, and the two strategies that run it: push-down and best fit.

The memory queue holds all blocks in address order; no two free ones are neighbours. The free queue holds the free
blocks by (SIZE, TIE): a treap in which all priorities are equal.

A block is WIDTH numbers in one flat array; see `allocator.kernels.treap`. Block 0 is END: the memory queue is a ring
that it closes, and its LEFT is the root of the treap.
"""

from allocator.kernels.numbers import Numbers, kernel
from allocator.kernels.treap import (
    BEFORE,
    BEHIND,
    FIELDS,
    KEY,
    LEFT,
    TIE,
    TOP,
    enter,
    first_from,
    keep,
    last,
    leave,
    new_block,
)

SIZE, OWNER = KEY, FIELDS
WIDTH = FIELDS + 1
END = 0
NO_CHUNK = -1
"""Owner of a free block; a chunk that is not there."""
NO_OWNER = -2
"""Owner of END: no chunk, but not free either."""


def clear(blocks: Numbers) -> None:
    """Makes the queues empty. There must be room for END and all blocks that will be in the memory queue at once."""
    for at in range(WIDTH):
        blocks[at] = 0
    blocks[OWNER], blocks[TOP] = NO_OWNER, WIDTH


def insert(blocks: Numbers, behind: int, size: int, owner: int) -> int:
    """Returns a used block before the block `behind`."""
    block = new_block(blocks, WIDTH)
    before = blocks[behind + BEFORE]
    blocks[block + SIZE], blocks[block + OWNER] = size, owner
    blocks[block + BEFORE], blocks[block + BEHIND] = before, behind
    blocks[before + BEHIND] = blocks[behind + BEFORE] = block
    return block


def remove(blocks: Numbers, block: int) -> None:
    """Takes a block out of the memory queue."""
    before, behind = blocks[block + BEFORE], blocks[block + BEHIND]
    blocks[before + BEHIND], blocks[behind + BEFORE] = behind, before
    keep(blocks, block)


def release(blocks: Numbers, block: int) -> None:
    """Frees a used block and merges it with free neighbours. The result is younger than every free block."""
    behind, before = blocks[block + BEHIND], blocks[block + BEFORE]
    if blocks[behind + OWNER] == NO_CHUNK:
        blocks[block + SIZE] += blocks[behind + SIZE]
        leave(blocks, LEFT, behind)
        remove(blocks, behind)
    if blocks[before + OWNER] == NO_CHUNK:
        blocks[block + SIZE] += blocks[before + SIZE]
        leave(blocks, LEFT, before)
        remove(blocks, before)
    blocks[END + TIE] += 1
    blocks[block + TIE], blocks[block + OWNER] = blocks[END + TIE], NO_CHUNK
    enter(blocks, LEFT, block)


def alloc(blocks: Numbers, owner: int, size: int) -> int:
    """Allocates the smallest free block that is large enough, split; else the largest, grown; else a new one."""
    block = first_from(blocks, LEFT, size)
    if not block:
        block = last(blocks, LEFT)
        if not block:
            return insert(blocks, END, size, owner)
    leave(blocks, LEFT, block)
    rest = blocks[block + SIZE] - size
    blocks[block + SIZE], blocks[block + OWNER] = size, owner
    if rest > 0:
        release(blocks, insert(blocks, blocks[block + BEHIND], rest, owner))
    return block


def overwrite(blocks: Numbers, block: int, offset: int, owner: int, size: int) -> None:
    """Passes bytes [offset, offset + size) of a used block to `owner`; what lies before and behind becomes free."""
    rest = blocks[block + SIZE] - offset - size
    blocks[block + SIZE], blocks[block + OWNER] = size, owner
    if offset:
        release(blocks, insert(blocks, block, offset, owner))
    if rest:
        release(blocks, insert(blocks, blocks[block + BEHIND], rest, owner))


def used_before(blocks: Numbers, block: int) -> int:
    """Returns the owner of the nearest used block before this one, or NO_CHUNK."""
    near = blocks[block + BEFORE]
    if blocks[near + OWNER] == NO_CHUNK:
        near = blocks[near + BEFORE]
    return max(blocks[near + OWNER], NO_CHUNK)


def used_behind(blocks: Numbers, block: int) -> int:
    """Returns the owner of the nearest used block behind this one, or NO_CHUNK."""
    near = blocks[block + BEHIND]
    if blocks[near + OWNER] == NO_CHUNK:
        near = blocks[near + BEHIND]
    return max(blocks[near + OWNER], NO_CHUNK)


@kernel
def order_blocks(
    begin: Numbers, end: Numbers, size: Numbers, root: Numbers, dest: Numbers, at: Numbers, freed: Numbers,
    blocks: Numbers, held: Numbers, lower: Numbers, upper: Numbers, behind: Numbers,
) -> None:  # fmt: skip
    """Runs the free list over the rows of a `Timeline`: the first half of push-down.

    Gives the used neighbours of each root when it was allocated, and in `behind` all roots from the lowest to the
    highest (`behind[len(begin)]` is the lowest, NO_CHUNK ends it): a new root goes right behind that of its neighbour
    below. Chains that are alive together then stand there as they stand in memory.
    """
    clear(blocks)
    head, ended = len(begin), 0
    behind[head] = NO_CHUNK
    for row in range(len(begin)):
        while ended < len(freed) and end[freed[ended]] <= begin[row]:
            release(blocks, held[freed[ended]])
            ended += 1
        if dest[row] != NO_CHUNK:
            held[row] = held[dest[row]]
            overwrite(blocks, held[row], at[row], row, size[row])
            continue
        held[row] = alloc(blocks, row, size[row])
        lower[row], upper[row] = used_before(blocks, held[row]), used_behind(blocks, held[row])
        link = head if lower[row] == NO_CHUNK else root[lower[row]]
        behind[row], behind[link] = behind[link], row


@kernel
def sink(
    size: Numbers, alignment: Numbers, root: Numbers, inner: Numbers,
    lower: Numbers, upper: Numbers, behind: Numbers, offset: Numbers,
) -> None:  # fmt: skip
    """Places each chain as low as the order allows, in one sweep from the lowest root up: the second half of push-down.

    A root lies above what was below it when it came, and above newcomers that slid in below its chain since.
    """
    for row in range(len(size)):
        offset[row] = 0
    row = behind[len(size)]
    while row != NO_CHUNK:
        least, below, above = offset[row], lower[row], upper[row]
        if below != NO_CHUNK:
            least = max(least, offset[root[below]] + inner[below] + size[below])
        offset[row] = -(-least // alignment[row]) * alignment[row]
        if above != NO_CHUNK:
            top = offset[row] + size[row] - inner[above]
            offset[root[above]] = max(offset[root[above]], top)
        row = behind[row]
    for row in range(len(size)):
        if root[row] != row:
            offset[row] = offset[root[row]] + inner[row]


def release_at(blocks: Numbers, block: int, cell: int) -> None:
    """Frees a block for best fit: TIE is its address, SIZE its bytes from its first cell on, 0 if it has none.

    Only blocks with such bytes stand in the free queue. END's address is where the arena ends.
    """
    behind, before = blocks[block + BEHIND], blocks[block + BEFORE]
    if blocks[behind + OWNER] == NO_CHUNK:
        if blocks[behind + SIZE]:
            leave(blocks, LEFT, behind)
        remove(blocks, behind)
    if blocks[before + OWNER] == NO_CHUNK:
        if blocks[before + SIZE]:
            leave(blocks, LEFT, before)
        blocks[block + TIE] = blocks[before + TIE]
        remove(blocks, before)
    start = -(-blocks[block + TIE] // cell) * cell
    blocks[block + SIZE] = max(blocks[blocks[block + BEHIND] + TIE] - start, 0)
    blocks[block + OWNER] = NO_CHUNK
    if blocks[block + SIZE]:
        enter(blocks, LEFT, block)


def cut_at(blocks: Numbers, block: int, address: int, size: int, owner: int, cell: int) -> None:
    """Gives `owner` bytes [address, address + size) of a block that is in no queue but the memory queue."""
    behind, start = blocks[block + BEHIND], blocks[block + TIE]
    blocks[block + TIE], blocks[block + OWNER] = address, owner
    if start < address:
        gap = insert(blocks, block, 0, owner)
        blocks[gap + TIE] = start
        release_at(blocks, gap, cell)
    if address + size < blocks[behind + TIE]:
        rest = insert(blocks, behind, 0, owner)
        blocks[rest + TIE] = address + size
        release_at(blocks, rest, cell)


def alloc_at(blocks: Numbers, owner: int, size: int, alignment: int, cell: int) -> int:
    """Returns the smallest free block in which the chunk fits where it is aligned, split; else a new one at the end.

    Where alignments differ, a block that could just hold it may be passed over for one that is sure to.
    """
    block = first_from(blocks, LEFT, size)
    if block:
        address = -(-blocks[block + TIE] // alignment) * alignment
        if address + size > blocks[blocks[block + BEHIND] + TIE]:
            block = first_from(blocks, LEFT, size + alignment - cell)
    if block:
        leave(blocks, LEFT, block)
    else:
        block = insert(blocks, END, 0, owner)
        blocks[block + TIE] = blocks[END + TIE]
    address = -(-blocks[block + TIE] // alignment) * alignment
    if blocks[block + BEHIND] == END:
        blocks[END + TIE] = max(blocks[END + TIE], -(-(address + size) // cell) * cell)
    cut_at(blocks, block, address, size, owner, cell)
    return block


@kernel
def place_best_fit(
    begin: Numbers, end: Numbers, size: Numbers, alignment: Numbers, dest: Numbers, at: Numbers, freed: Numbers,
    cell: int, blocks: Numbers, held: Numbers, offset: Numbers,
) -> None:  # fmt: skip
    """Places the rows of a `Timeline` by best fit. `cell` divides the alignment of each root."""
    clear(blocks)
    ended = 0
    for row in range(len(begin)):
        while ended < len(freed) and end[freed[ended]] <= begin[row]:
            release_at(blocks, held[freed[ended]], cell)
            ended += 1
        if dest[row] == NO_CHUNK:
            held[row] = alloc_at(blocks, row, size[row], alignment[row], cell)
            offset[row] = blocks[held[row] + TIE]
        else:
            held[row] = held[dest[row]]
            offset[row] = offset[dest[row]] + at[row]
            cut_at(blocks, held[row], offset[row], size[row], row, cell)
