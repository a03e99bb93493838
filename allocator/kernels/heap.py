"""A heap of blocks: what first fit, best fit, PyTorch's caching allocator and the BFC arenas have in common.

Segments come from the system and are cut into blocks; neighbours that are free are one block. Free blocks stand in up
to two pools, each a treap (Seidel and Aragon 1996). In the order of (size, address) its first block that is large
enough is the best fit. In the order of addresses, with sizes as priorities, it is Stephenson's Cartesian tree ("Fast
fits", SOSP 1983): its leftmost block that is large enough is the first fit, and its root the largest. That tree is flat
unless sizes rise or fall with addresses: then a step takes time in proportion to the free blocks.

A block is WIDTH numbers in one flat array, and is named by the index of the first one; 0 stands for "no block". In what
would be block 0, LEFT and RIGHT are the roots of the pools, and BEFORE is the last block of a heap that grows.
"""

from allocator.kernels.numbers import Numbers

SIZE, ADDRESS, IS_USED, BEFORE, BEHIND, LEFT, RIGHT, KEY, PRIORITY, HASH, POOL = range(11)
WIDTH = 11
SPARE, TOP = PRIORITY, HASH
"""Fields of block 0: the first block given back (the next is its BEHIND), and where blocks were never used yet."""

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


def is_less(blocks: Numbers, one: int, other: int) -> bool:
    """Returns whether a block stands before another in the order of its pool."""
    first, second = blocks[one + KEY], blocks[other + KEY]
    return first < second or (first == second and blocks[one + ADDRESS] < blocks[other + ADDRESS])


def is_above(blocks: Numbers, one: int, other: int) -> bool:
    """Returns whether a block stands above another in the tree of its pool."""
    first, second = blocks[one + PRIORITY], blocks[other + PRIORITY]
    return first > second or (first == second and blocks[one + HASH] > blocks[other + HASH])


def enter(blocks: Numbers, state: Numbers, block: int) -> None:
    """Makes a block free: puts it into its pool."""
    by_address = state[BY_ADDRESS]
    blocks[block + KEY] = blocks[block + ADDRESS] if by_address else blocks[block + SIZE]
    blocks[block + PRIORITY] = blocks[block + SIZE] if by_address else 0
    blocks[block + IS_USED] = 0
    link = LEFT + blocks[block + POOL]
    below = blocks[link]
    while below and is_above(blocks, below, block):
        link = below + (RIGHT if is_less(blocks, below, block) else LEFT)
        below = blocks[link]
    blocks[link] = block
    low, high = block + LEFT, block + RIGHT
    while below:
        if is_less(blocks, below, block):
            blocks[low] = below
            low = below + RIGHT
            below = blocks[low]
        else:
            blocks[high] = below
            high = below + LEFT
            below = blocks[high]
    blocks[low] = blocks[high] = 0


def leave(blocks: Numbers, block: int) -> None:
    """Takes a block out of its pool."""
    link = LEFT + blocks[block + POOL]
    while blocks[link] != block:
        above = blocks[link]
        link = above + (RIGHT if is_less(blocks, above, block) else LEFT)
    low, high = blocks[block + LEFT], blocks[block + RIGHT]
    while low and high:
        if is_above(blocks, low, high):
            blocks[link] = low
            link = low + RIGHT
            low = blocks[link]
        else:
            blocks[link] = high
            link = high + LEFT
            high = blocks[link]
    blocks[link] = low + high
    blocks[block + IS_USED] = 1


def find(blocks: Numbers, state: Numbers, pool: int, size: int) -> int:
    """Returns the free block to take for so many bytes, or 0."""
    best, block = 0, blocks[LEFT + pool]
    if state[BY_ADDRESS]:
        while block and blocks[block + SIZE] >= size:  # what lies below it is no larger
            best, block = block, blocks[block + LEFT]
        return best
    while block:
        if blocks[block + SIZE] >= size:
            best, block = block, blocks[block + LEFT]
        else:
            block = blocks[block + RIGHT]
    return best


def largest(blocks: Numbers, state: Numbers, pool: int) -> int:
    """Returns the bytes of the largest free block of a pool."""
    block = blocks[LEFT + pool]
    if not block:
        return 0
    while not state[BY_ADDRESS] and blocks[block + RIGHT]:
        block = blocks[block + RIGHT]
    return blocks[block + SIZE]


def insert(blocks: Numbers, before: int, address: int, size: int, pool: int) -> int:
    """Returns a used block behind the block `before`, or the first one of a segment."""
    block = blocks[SPARE]
    if block:
        blocks[SPARE] = blocks[block + BEHIND]
    else:
        block = blocks[TOP]
        blocks[TOP] = block + WIDTH
        mixed = (block * 0x45D9F3B) & 0x7FFFFFFF
        blocks[block + HASH] = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0x7FFFFFFF
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
    blocks[other + BEHIND], blocks[SPARE] = blocks[SPARE], other


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
            blocks[block + BEHIND], blocks[SPARE] = blocks[SPARE], block
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
    """Hands out a free block, or its first bytes if so many are left that it is worth while to split it."""
    leave(blocks, block)
    rest = blocks[block + SIZE] - size
    if rest >= least_rest:
        blocks[block + SIZE] = size
        pool = blocks[block + POOL]
        enter(blocks, state, insert(blocks, block, blocks[block + ADDRESS] + size, rest, pool))
    state[USED] += blocks[block + SIZE]


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
            block = find(blocks, state, pool[one], wanted)
            if not block:
                got = growth(blocks, state, wanted, segment[one])
                if not got and state[RELEASES]:
                    release(blocks, state, heads, head_of, until)
                    got = growth(blocks, state, wanted, segment[one])
                if not got:
                    return row
                extend(blocks, state, base, bytes_of, since, heads, head_of, got, pool[one])
                block = find(blocks, state, pool[one], wanted)
            take(blocks, state, block, wanted, least_rest[one])
            held[one], offset[one], taken[one] = block, blocks[block + ADDRESS], blocks[block + SIZE]
        used[row], reserved[row] = state[USED], state[RESERVED]
        largest_free[row] = max(largest(blocks, state, 0), largest(blocks, state, 1))
    return len(ids)
