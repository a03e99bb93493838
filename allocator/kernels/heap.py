"""A heap of blocks: what first fit, best fit, PyTorch's caching allocator and the BFC arenas have in common.

Segments come from the system and are cut into blocks; neighbours that are free are one block. Free blocks stand in up
to two pools, each a treap. In the order of (size, address) its first block that is large
enough is the best fit. In the order of addresses, with sizes as priorities, it is Stephenson's Cartesian tree ("Fast
fits", SOSP 1983): its leftmost block that is large enough is the first fit, and its root the largest. That tree is flat
unless sizes rise or fall with addresses: then a step takes time in proportion to the free blocks.

A block is WIDTH numbers in one flat array; see `allocator.kernels.treap`. In what would be block 0, LEFT and RIGHT are
the roots of the pools, and BEFORE is the last block of a heap that grows.
"""

from allocator.kernels.numbers import Numbers, kernel
from allocator.kernels.treap import (
    BEFORE,
    BEHIND,
    FIELDS,
    KEY,
    LEFT,
    PRIORITY,
    TIE,
    TOP,
    first_from,
    keep,
    last,
    new_block,
)
from allocator.kernels.treap import enter as enter_treap
from allocator.kernels.treap import leave as leave_treap

ADDRESS = TIE
SIZE, IS_USED, POOL = FIELDS, FIELDS + 1, FIELDS + 2
WIDTH = FIELDS + 3

BY_ADDRESS, GROWTH, RELEASES, CAPACITY, GRAIN, REGION, LIMIT, RESERVED, USED, END, SEGMENTS, HEADS, EVENT = range(13)
"""Fields of the state of a heap. Rules: which of the two orders, how it grows, whether it gives unused segments
back when it may not, and the bytes that it may reserve, in steps of GRAIN. REGION is the next segment where segments
double, up to LIMIT. Bytes that it reserves and hands out; the end of its addresses; how many segments there were, and
are; the event."""
STATE = 13
IN_SEGMENTS, DOUBLING, AT_END = range(3)
"""Growth: by a segment whose size goes with the request; whose size doubles; by as much as misses at its end."""


def clear(blocks: Numbers) -> None:
    """Makes the heap empty. There must be room for block 0 and two blocks for each allocation."""
    for at in range(WIDTH):
        blocks[at] = 0
    blocks[IS_USED], blocks[TOP] = 1, WIDTH


def enter(blocks: Numbers, state: Numbers, block: int) -> None:
    """Makes a block free: puts it into its pool."""
    by_address = state[BY_ADDRESS]
    blocks[block + KEY] = blocks[block + ADDRESS] if by_address else blocks[block + SIZE]
    blocks[block + PRIORITY] = blocks[block + SIZE] if by_address else 0
    blocks[block + IS_USED] = 0
    enter_treap(blocks, LEFT + blocks[block + POOL], block)


def leave(blocks: Numbers, block: int) -> None:
    """Takes a block out of its pool."""
    leave_treap(blocks, LEFT + blocks[block + POOL], block)
    blocks[block + IS_USED] = 1


def find(blocks: Numbers, state: Numbers, pool: int, size: int) -> int:
    """Returns the free block to take for `size` bytes, or 0."""
    if not state[BY_ADDRESS]:
        return first_from(blocks, LEFT + pool, size)
    best, block = 0, blocks[LEFT + pool]
    while block and blocks[block + SIZE] >= size:  # what lies below it is no larger
        best, block = block, blocks[block + LEFT]
    return best


def largest(blocks: Numbers, state: Numbers, pool: int) -> int:
    """Returns the bytes of the largest free block of a pool."""
    block = blocks[LEFT + pool] if state[BY_ADDRESS] else last(blocks, LEFT + pool)
    return blocks[block + SIZE] if block else 0


def insert(blocks: Numbers, before: int, address: int, size: int, pool: int) -> int:
    """Returns a used block behind the block `before`, or the first one of a segment."""
    block = new_block(blocks, WIDTH)
    behind = blocks[before + BEHIND] if before else 0
    blocks[block + ADDRESS], blocks[block + SIZE], blocks[block + POOL] = address, size, pool
    blocks[block + BEFORE], blocks[block + BEHIND], blocks[block + IS_USED] = before, behind, 1
    blocks[before + BEHIND] = blocks[behind + BEFORE] = block
    return block


def absorb(blocks: Numbers, block: int) -> None:
    """Makes the block behind this one part of it. Both are in no pool."""
    other = blocks[block + BEHIND]
    behind = blocks[other + BEHIND]
    blocks[block + SIZE] += blocks[other + SIZE]
    blocks[block + BEHIND], blocks[behind + BEFORE] = behind, block
    keep(blocks, other)


def free(blocks: Numbers, state: Numbers, block: int) -> None:
    """Frees a used block and merges it with free neighbours."""
    state[USED] -= blocks[block + SIZE]
    behind, before = blocks[block + BEHIND], blocks[block + BEFORE]
    if not blocks[behind + IS_USED]:
        leave(blocks, behind)
        absorb(blocks, block)
    if not blocks[before + IS_USED]:
        leave(blocks, before)
        absorb(blocks, before)
        block = before
    enter(blocks, state, block)


def growth(blocks: Numbers, state: Numbers, size: int, segment: int) -> int:
    """Returns the bytes to get from the system for a request, or 0 if they are more than the heap may reserve."""
    room = (state[CAPACITY] - state[RESERVED]) // state[GRAIN] * state[GRAIN]
    if state[GROWTH] == AT_END:
        last = blocks[BEFORE]
        segment = size if blocks[last + IS_USED] else size - blocks[last + SIZE]
    if state[GROWTH] != DOUBLING:
        return segment if segment <= room else 0
    if size > room:
        return 0
    if size <= state[REGION]:
        segment = state[REGION]
        state[REGION] = min(2 * segment, state[LIMIT])
        return min(segment, room)
    while size > state[REGION]:
        state[REGION] *= 2
    return min(state[REGION], room)


def release(blocks: Numbers, state: Numbers, heads: Numbers, head_of: Numbers, until: Numbers) -> None:
    """Gives segments back of which no byte is used."""
    kept = 0
    for k in range(state[HEADS]):
        block = head_of[heads[k]]
        if blocks[block + IS_USED] or blocks[block + BEHIND]:
            heads[kept] = heads[k]
            kept += 1
        else:
            leave(blocks, block)
            state[RESERVED] -= blocks[block + SIZE]
            until[heads[k]] = state[EVENT]
            keep(blocks, block)
    state[HEADS] = kept


def extend(
    blocks: Numbers, state: Numbers, base: Numbers, bytes_of: Numbers, since: Numbers, heads: Numbers, head_of: Numbers,
    got: int, pool: int,
) -> None:  # fmt: skip
    """Adds bytes from the system: a segment of their own, or more of the one that there is."""
    number, last = state[SEGMENTS], blocks[BEFORE]
    base[number], bytes_of[number], since[number] = state[END], got, state[EVENT]
    state[SEGMENTS] += 1
    if state[GROWTH] != AT_END:
        last = 0
    block = insert(blocks, last, state[END], got, pool)
    state[END] += got
    state[RESERVED] += got
    heads[state[HEADS]], head_of[number] = number, block
    state[HEADS] += 1
    if not blocks[last + IS_USED]:
        leave(blocks, last)
        absorb(blocks, last)
        block = last
    enter(blocks, state, block)


def take(blocks: Numbers, state: Numbers, block: int, size: int, least_rest: int) -> None:
    """Hands out a free block, or only its first `size` bytes if at least `least_rest` bytes are left."""
    leave(blocks, block)
    rest = blocks[block + SIZE] - size
    if rest >= least_rest:
        blocks[block + SIZE] = size
        pool = blocks[block + POOL]
        enter(blocks, state, insert(blocks, block, blocks[block + ADDRESS] + size, rest, pool))
    state[USED] += blocks[block + SIZE]


def allocate(
    blocks: Numbers, state: Numbers, base: Numbers, bytes_of: Numbers, since: Numbers, until: Numbers, heads: Numbers,
    head_of: Numbers, wanted: int, pool: int, segment: int, least_rest: int,
) -> int:  # fmt: skip
    """Returns a block that is handed out, or 0 where the heap may not grow for it."""
    block = find(blocks, state, pool, wanted)
    if not block:
        got = growth(blocks, state, wanted, segment)
        if not got and state[RELEASES]:
            release(blocks, state, heads, head_of, until)
            got = growth(blocks, state, wanted, segment)
        if not got:
            return 0
        extend(blocks, state, base, bytes_of, since, heads, head_of, got, pool)
        block = find(blocks, state, pool, wanted)
    take(blocks, state, block, wanted, least_rest)
    return block


@kernel
def simulate(
    ids: Numbers, sign: Numbers, size: Numbers, pool: Numbers, segment: Numbers, least_rest: Numbers,
    state: Numbers, blocks: Numbers, held: Numbers, heads: Numbers, head_of: Numbers,
    base: Numbers, bytes_of: Numbers, since: Numbers, until: Numbers,
    offset: Numbers, taken: Numbers, used: Numbers, reserved: Numbers, largest_free: Numbers,
) -> int:  # fmt: skip
    """Runs all events, or up to the first that the heap may not grow for; says how many it ran."""
    clear(blocks)
    for row in range(len(ids)):
        one = ids[row]
        wanted = size[one]
        state[EVENT] = row
        if wanted and sign[row] < 0:
            free(blocks, state, held[one])
        elif wanted:
            block = allocate(
                blocks, state, base, bytes_of, since, until, heads, head_of,
                wanted, pool[one], segment[one], least_rest[one],
            )  # fmt: skip
            if not block:
                return row
            held[one], offset[one], taken[one] = block, blocks[block + ADDRESS], blocks[block + SIZE]
        used[row], reserved[row] = state[USED], state[RESERVED]
        largest_free[row] = max(largest(blocks, state, 0), largest(blocks, state, 1))
    return len(ids)
