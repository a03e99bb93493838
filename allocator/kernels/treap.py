"""Sets of blocks as treaps (Seidel and Aragon 1996): by KEY, then TIE; of two blocks that one is above whose PRIORITY,
then HASH is greater. No two blocks of a set have the same KEY and TIE.

A block is a few numbers in one flat array, and is named by the index of the first one; it begins with the FIELDS of
this module. 0 stands for "no block": of what would be block 0, a link such as LEFT is the root of a treap. A block that
is not used any more is kept, to be the next new one. Hashes are those of indices, so runs are equal.
"""

from allocator.kernels.numbers import Numbers

KEY, TIE, PRIORITY, HASH, LEFT, RIGHT, BEFORE, BEHIND = range(8)
FIELDS = 8
SPARE, TOP = PRIORITY, HASH
"""Fields of block 0: the first block that is kept (the next is its BEHIND), and where blocks were never used yet."""


def new_block(blocks: Numbers, width: int) -> int:
    """Returns a block of `width` numbers: one that was kept, or one that was never used."""
    block = blocks[SPARE]
    if block:
        blocks[SPARE] = blocks[block + BEHIND]
        return block
    block = blocks[TOP]
    blocks[TOP] = block + width
    mixed = (block * 0x45D9F3B) & 0x7FFFFFFF
    blocks[block + HASH] = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0x7FFFFFFF
    return block


def keep(blocks: Numbers, block: int) -> None:
    """Keeps a block that is in no treap for `new_block`."""
    blocks[block + BEHIND], blocks[SPARE] = blocks[SPARE], block


def is_less(blocks: Numbers, one: int, other: int) -> bool:
    """Returns whether a block stands before another in the order of keys."""
    first, second = blocks[one + KEY], blocks[other + KEY]
    return first < second or (first == second and blocks[one + TIE] < blocks[other + TIE])


def is_above(blocks: Numbers, one: int, other: int) -> bool:
    """Returns whether a block stands above another in the tree."""
    first, second = blocks[one + PRIORITY], blocks[other + PRIORITY]
    return first > second or (first == second and blocks[one + HASH] > blocks[other + HASH])


def enter(blocks: Numbers, root: int, block: int) -> None:
    """Puts a block into the treap of this root."""
    link = root
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


def leave(blocks: Numbers, root: int, block: int) -> None:
    """Takes a block out of the treap of this root."""
    link = root
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


def first_from(blocks: Numbers, root: int, key: int) -> int:
    """Returns the first block whose KEY is at least `key`, or 0."""
    best, block = 0, blocks[root]
    while block:
        if blocks[block + KEY] >= key:
            best, block = block, blocks[block + LEFT]
        else:
            block = blocks[block + RIGHT]
    return best


def last(blocks: Numbers, root: int) -> int:
    """Returns the last block, or 0 where there is none."""
    block = blocks[root]
    while block and blocks[block + RIGHT]:
        block = blocks[block + RIGHT]
    return block
