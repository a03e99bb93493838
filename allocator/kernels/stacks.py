"""The lowest stack of chunks of several alignments, by branch and bound over sets of them.

Of all stacks of the same chunks the lowest counts (Held and Karp 1962). So sets of chunks grow by one chunk in each
round, and a set goes on where its stack, the chunks that are left, and the bytes that their alignments surely waste
keep a capacity. Where there are too many sets, the capacity is lowered: what is left out needs more than it.

A beam search, of any number of chunks, proves nothing and finds a stack (Lowerre 1976, "The Harpy speech recognition
system"). Where there are too many sets, the best go on: those that need the fewest bytes in the end, as far as that is
known, then those with the fewest bytes left, so that small chunks that fit anywhere come late.
"""

from typing import NamedTuple

from allocator.kernels.gaps import sort
from allocator.kernels.numbers import Flags, Numbers, fill, kernel

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
    and fills `filler` bytes of holes at most. A hole above a stack counts up to the `limit` of the row. Scratch by
    cell: sums of `holes` and `fillers` that are left. Sets of this round and of the next one are halves of `taken`,
    with the lowest `top` of each and what it `needs`; a half holds more sets than there are chunks. `place` finds the
    sets of the next round; it has twice as many places.
    """

    size: Numbers
    alignment: Numbers
    alike: Numbers
    cells: Numbers
    limit: Numbers
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

    Chunks that begin at edges of cells leave holes, but for the topmost. Looser chunks fill them.
    """
    most, count = 0, len(s.size)
    for level in range(len(s.cells)):
        row = at = level * count
        while at < row + count and taken >> s.largest[at] & 1:
            at += 1
        if at < row + count and s.hole[row + s.largest[at]] != NO_HOLE:
            holes = s.holes[level] - max(s.hole[row + chunk], 0) - s.hole[row + s.largest[at]]
            fillers = s.fillers[level] - s.filler[row + chunk]
            most = max(most, hole_above(s, level, end) + holes - fillers)
    return most


def hole_above(s: "Stacks | Beam", level: int, end: int) -> int:
    """Returns the bytes from the end of a stack to the edge of a cell, or 0 where they do not count."""
    hole = -end % s.cells[level]
    return hole if hole <= s.limit[level] else 0


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


STACKS = 0
"""Place of the cursor of a beam search: stacks of this round, in the first half of the columns."""


class Beam(NamedTuple):
    """Chunks, those of the widest alignment first, as the first eight columns of `Stacks`.

    `mark` has a random number for each chunk; a set is known by the combination of its chunks' marks, in `key`. Stacks
    of this round and of the next one are halves of `taken` (a flag for each chunk), `top` and `key`. `parent` and
    `topmost` have a row for each round: the stack that each grew from, and its topmost chunk. Scratch: candidates, each
    a stack and a chunk in one number, with what they `need`, in two halves for sorting; `digits`; `seen`, twice as long
    as there are stacks at least; by cell, `holes` and `fillers` that are left, and the two chunks left that leave most.
    """

    size: Numbers
    alignment: Numbers
    alike: Numbers
    cells: Numbers
    limit: Numbers
    hole: Numbers
    filler: Numbers
    largest: Numbers
    mark: Numbers
    taken: Flags
    top: Numbers
    key: Numbers
    parent: Numbers
    topmost: Numbers
    candidate: Numbers
    needs: Numbers
    digits: Numbers
    seen: Numbers
    holes: Numbers
    fillers: Numbers
    first: Numbers
    second: Numbers
    cursor: Numbers


@kernel
def grow_stacks(b: Beam, done: int, capacity: int, total: int) -> int:
    """Puts one chunk more on each stack of `done` chunks, and keeps the best. Returns how many candidates there were.

    Stacks that need more than the capacity do not go on; the cursor has how many do. `total` is above the bytes of all
    chunks.
    """
    count = 0
    for stack in range(b.cursor[STACKS]):
        count = list_candidates(b, stack, capacity, total, count)
    first = sort(b.candidate, b.needs, b.digits, count)
    keep_best(b, done, first, count)
    return count


def list_candidates(b: Beam, stack: int, capacity: int, total: int, count: int) -> int:
    """Lists the chunks that may come next on a stack, behind `count` candidates. Returns how many there are then.

    Of chunks that are alike the first comes first. The widest come in their turn, but for one that waits (see
    `grow`).
    """
    chunks, widest = len(b.size), 0
    row, rest = stack * chunks, begin_stack(b, stack)
    for chunk in range(chunks):
        if b.taken[row + chunk]:
            continue
        widest += b.alignment[chunk] == b.alignment[0]
        is_late = widest > 2 and b.alignment[chunk] == b.alignment[0]
        if is_late or (b.alike[chunk] != NO_CHUNK and not b.taken[row + b.alike[chunk]]):
            continue
        end, left = end_on(b, stack, chunk), rest - b.size[chunk]
        needed = end + left + wasted(b, chunk, end)
        if needed <= capacity:
            b.candidate[count], b.needs[count] = row + chunk, needed * total + left
            count += 1
    return count


def begin_stack(b: Beam, stack: int) -> int:
    """Sums up holes and fillers of the chunks that are left, and finds the largest holes. Returns the bytes left."""
    rest, chunks = 0, len(b.size)
    row = stack * chunks
    fill(b.holes, 0)
    fill(b.fillers, 0)
    for chunk in range(chunks):
        if not b.taken[row + chunk]:
            rest += b.size[chunk]
            for level in range(len(b.cells)):
                b.holes[level] += max(b.hole[level * chunks + chunk], 0)
                b.fillers[level] += b.filler[level * chunks + chunk]
    for level in range(len(b.cells)):
        b.first[level] = next_left(b, row, level, 0)
        b.second[level] = next_left(b, row, level, b.first[level] + 1)
    return rest


def next_left(b: Beam, row: int, level: int, at: int) -> int:
    """Returns the first place from `at` on, of chunks by holes, with a chunk that is left; or their number."""
    chunks = len(b.size)
    while at < chunks and b.taken[row + b.largest[level * chunks + at]]:
        at += 1
    return at


def end_on(b: Beam, stack: int, chunk: int) -> int:
    """Returns where a chunk ends that lies on a stack."""
    return -(-b.top[stack] // b.alignment[chunk]) * b.alignment[chunk] + b.size[chunk]


def wasted(b: Beam, chunk: int, end: int) -> int:
    """Returns the bytes that are surely wasted above a chunk: see `waste`."""
    most, chunks = 0, len(b.size)
    for level in range(len(b.cells)):
        row, at = level * chunks, b.first[level]
        if at < chunks and b.largest[row + at] == chunk:
            at = b.second[level]
        if at < chunks and b.hole[row + b.largest[row + at]] != NO_HOLE:
            holes = b.holes[level] - max(b.hole[row + chunk], 0) - b.hole[row + b.largest[row + at]]
            fillers = b.fillers[level] - b.filler[row + chunk]
            most = max(most, hole_above(b, level, end) + holes - fillers)
    return most


def keep_best(b: Beam, done: int, first: int, count: int) -> None:
    """Makes stacks of the next round from the best candidates of different sets, which stand from `first` on."""
    chunks, most, kept = len(b.size), len(b.top) // 2, 0
    fill(b.seen, 0)
    for at in range(first, first + count):
        stack, chunk = b.candidate[at] // chunks, b.candidate[at] % chunks
        key = b.key[stack] ^ b.mark[chunk]
        if kept == most or not is_new(b, key):
            continue
        row = (most + kept) * chunks
        for other in range(chunks):
            b.taken[row + other] = b.taken[stack * chunks + other]
        b.taken[row + chunk] = 1
        b.top[most + kept], b.key[most + kept] = end_on(b, stack, chunk), key
        b.parent[done * most + kept], b.topmost[done * most + kept] = stack, chunk
        kept += 1
    for at in range(kept):
        b.top[at], b.key[at] = b.top[most + at], b.key[most + at]
    for at in range(kept * chunks):
        b.taken[at] = b.taken[most * chunks + at]
    b.cursor[STACKS] = kept


def is_new(b: Beam, key: int) -> int:
    """Enters a set into those that are seen. Returns whether it was not there."""
    slot = key % len(b.seen)
    while b.seen[slot]:
        if b.seen[slot] == key:
            return 0
        slot = slot + 1 if slot + 1 < len(b.seen) else 0
    b.seen[slot] = key
    return 1
