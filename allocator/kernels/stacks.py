"""The lowest stack of chunks of several alignments, by branch and bound over sets of them.

Of all stacks of the same chunks the lowest counts (Held and Karp 1962). So sets of chunks grow by one chunk in each
round, and a set goes on where its stack, the chunks that are left, and the bytes that their alignments surely waste
keep a capacity. Where there are too many sets, the capacity is lowered: what is left out needs more than it.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, fill, kernel

MOST = 62
"""The most chunks: a set of them is a whole number."""
NO_HOLE, NO_CHUNK = -1, -1
SETS, CAPACITY, LOOKS = range(3)
"""Places of the cursor: sets of the next round; the capacity; sets with a chunk more that may still be looked at."""
_STEP = 8
"""A capacity is lowered by this part of what it is above the bound that is proved already."""


class Stacks(NamedTuple):
    """Chunks, those of the widest alignment first: bytes, alignment, the chunk before that is alike (or NO_CHUNK).

    A row of `hole`, `filler` and `largest` belongs to each of `cells`. A chunk that begins at an edge of a cell leaves
    `hole` bytes of its last one, and `largest` lists all chunks by that, largest first. Any other has NO_HOLE there,
    and fills `filler` bytes beside its whole cells. Scratch by cell: sums of `holes` and `fillers` that are left. Sets
    of this round and of the next one are halves of `taken`, with the lowest `top` of each and what it `needs`; a half
    holds more sets than there are chunks. `place` finds the sets of the next round; it has twice as many places.
    """

    size: Numbers
    alignment: Numbers
    alike: Numbers
    cells: Numbers
    hole: Numbers
    filler: Numbers
    largest: Numbers
    holes: Numbers
    fillers: Numbers
    taken: Numbers
    top: Numbers
    needs: Numbers
    place: Numbers
    cursor: Numbers


@kernel
def lowest_stack(s: Stacks, proved: int) -> int:
    """Returns the bytes that every stack needs; `proved`, where it is too much work to prove more.

    The cursor has the capacity, which is not below `proved`. It is proved only that stacks need more than that, if the
    lowest one does.
    """
    count, most, first, sets = len(s.size), len(s.taken) // 2, 0, 1
    s.taken[0], s.top[0], s.needs[0] = 0, 0, 0
    for _ in range(count):
        s.cursor[SETS], following = 0, most - first
        fill(s.place, 0)
        for at in range(first, first + sets):
            if s.needs[at] <= s.cursor[CAPACITY]:
                grow(s, at, following)
            if s.cursor[SETS] + count > most:
                lower(s, following, proved)
            if s.cursor[LOOKS] < 0 or s.cursor[SETS] + count > most:
                return proved
        first, sets = following, s.cursor[SETS]
    return min(s.top[first], s.cursor[CAPACITY] + 1) if sets else s.cursor[CAPACITY] + 1


def grow(s: Stacks, at: int, following: int) -> None:
    """Adds each chunk that is left to a set, and enters what keeps the capacity into the next round.

    Of chunks that are alike the first comes first. Runs, each of them one of the widest chunks and all that lies on it
    up to the next, may change places but for the topmost. So the widest come in their turn, but for one that waits.
    """
    count, taken, rest, widest = len(s.size), s.taken[at], begin_set(s, s.taken[at]), 0
    for chunk in range(count):
        if taken >> chunk & 1:
            continue
        widest += s.alignment[chunk] == s.alignment[0]
        is_late = widest > 2 and s.alignment[chunk] == s.alignment[0]
        if is_late or (s.alike[chunk] != NO_CHUNK and not taken >> s.alike[chunk] & 1):
            continue
        s.cursor[LOOKS] -= 1
        end = -(-s.top[at] // s.alignment[chunk]) * s.alignment[chunk] + s.size[chunk]
        needed = end + rest - s.size[chunk]
        if needed <= s.cursor[CAPACITY]:
            needed += waste(s, taken + (1 << chunk), chunk, end)
            if needed <= s.cursor[CAPACITY]:
                enter(s, taken + (1 << chunk), end, needed, following)


def begin_set(s: Stacks, taken: int) -> int:
    """Sums up the holes and fillers of the chunks that are left. Returns their bytes."""
    rest, count = 0, len(s.size)
    fill(s.holes, 0)
    fill(s.fillers, 0)
    for chunk in range(count):
        if not taken >> chunk & 1:
            rest += s.size[chunk]
            for level in range(len(s.cells)):
                s.holes[level] += max(s.hole[level * count + chunk], 0)
                s.fillers[level] += s.filler[level * count + chunk]
    return rest


def waste(s: Stacks, taken: int, chunk: int, end: int) -> int:
    """Returns the bytes that are surely wasted between the end of a chunk and the topmost of those that are left.

    Chunks that begin at edges of cells leave holes, but for the topmost. Into a hole go bytes of looser chunks that do
    not fill whole cells.
    """
    most, count = 0, len(s.size)
    for level in range(len(s.cells)):
        row = at = level * count
        while at < row + count and taken >> s.largest[at] & 1:
            at += 1
        if at < row + count and s.hole[row + s.largest[at]] != NO_HOLE:
            holes = s.holes[level] - max(s.hole[row + chunk], 0) - s.hole[row + s.largest[at]]
            fillers = s.fillers[level] - s.filler[row + chunk]
            most = max(most, -end % s.cells[level] + holes - fillers)
    return most


def enter(s: Stacks, taken: int, end: int, needed: int, following: int) -> None:
    """Enters a set into the next round, or lowers its stack if it is there already."""
    slot = find(s, taken, following)
    if s.place[slot] == 0:
        s.cursor[SETS] += 1
        s.place[slot] = s.cursor[SETS]
    elif s.top[following + s.place[slot] - 1] <= end:
        return
    at = following + s.place[slot] - 1
    s.taken[at], s.top[at], s.needs[at] = taken, end, needed


def find(s: Stacks, taken: int, following: int) -> int:
    """Returns the place of a set of the next round, or an empty one for it."""
    slot = taken % len(s.place)
    while s.place[slot] and s.taken[following + s.place[slot] - 1] != taken:
        slot = slot + 1 if slot + 1 < len(s.place) else 0
    return slot


def lower(s: Stacks, following: int, proved: int) -> None:
    """Lowers the capacity until an eighth of the next round is free, or the capacity is what is proved."""
    most, count = len(s.taken) // 2, s.cursor[SETS]
    while s.cursor[CAPACITY] > proved and count > most - most // 8:
        s.cursor[CAPACITY] -= max((s.cursor[CAPACITY] - proved) // _STEP, 1)
        count = 0
        for at in range(following, following + s.cursor[SETS]):
            count += s.needs[at] <= s.cursor[CAPACITY]
    sets, s.cursor[SETS] = s.cursor[SETS], 0
    fill(s.place, 0)
    for at in range(following, following + sets):
        if s.needs[at] <= s.cursor[CAPACITY]:
            enter(s, s.taken[at], s.top[at], s.needs[at], following)
