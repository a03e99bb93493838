"""Best-gap placement: one by one, each into the tightest gap between those placed before that it must not overlap.

(Greedy by size for offset calculation, Pisarchyk and Lee 2020; any order will do.) What is placed is a body: a chain of
overwrites, which moves as one. What a body meets bars a range of offsets to it: those above a `ceiling` (the highest
offset below) and below a `floor` (the lowest offset above). What bars the way is found by one of three searches:
`place_near` has lists of neighbours, `place_swept` looks for all that is alive at the same time, and `place_covered`
(in `allocator.kernels.covers`) looks for the bytes that are in use then.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, kernel

NOWHERE = -1
"""Offset of a body that has none; pinned offset of one that may lie anywhere."""
BELOW = -1
"""Ceiling of a range in which offset 0 lies: there is no gap below it."""
FEW = 32
"""Up to so many ranges are sorted by insertion."""
MOST_PAIRS = 8
"""Others that have the same highest bits as a range, on average and at most, where these are sorted by insertion."""
WIDEST = 11
"""Bits of a digit that a pass of the sort looks at, at most: digits stay in the cache of the processor."""
DIGITS = 1 << WIDEST
_BITS = 63
"""Bits of a number; a shift by more means nothing."""
BLOCK = 16
"""Members of one leaf of the tree of a sweep."""
AT, ARENA, LINED = range(3)
"""Places of a cursor: where the order goes on; the bytes of the arena so far, or NOT_BEGUN; the bodies in line."""
NOT_BEGUN = -1


class Bodies(NamedTuple):
    """Bytes, alignment and pinned offset (or NOWHERE) of each body."""

    size: Numbers
    alignment: Numbers
    pinned: Numbers


class Barred(NamedTuple):
    """Scratch for the ranges that are barred to a body: twice as many as there may be, and DIGITS digits."""

    floors: Numbers
    ceilings: Numbers
    digits: Numbers


class NeighbourLists(NamedTuple):
    """The neighbours of body i are near[start[i] : start[i + 1]], sorted.

    Where neighbour near[k] lies at x, it bars the offsets above x + low[k] and below x + high[k]; chains may stand
    there several times.
    """

    start: Numbers
    near: Numbers
    low: Numbers
    high: Numbers


class Line(NamedTuple):
    """Scratch: a mark, which is 0 at first, for each body; a place in line and a hit for each too.

    Where bodies have few neighbours, there are no places and no hits, and no line.
    """

    mark: Numbers
    line: Numbers
    hits: Numbers


@kernel
def place_near(
    bodies: Bodies, lists: NeighbourLists, order: Numbers, limit: int, offset: Numbers,
    scratch: Line, barred: Barred, cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Places all bodies, pinned ones first, then in this order. Returns how many ranges and bodies it looked at.

    Those before the cursor keep the offsets that they have, if it has not begun. Ends early, with the rest nowhere, as
    soon as the arena is above `limit`, or when it looked at so many; then it may go on.
    """
    size, alignment, pinned, line = bodies.size, bodies.alignment, bodies.pinned, scratch.line
    looked = 0
    if cursor[ARENA] == NOT_BEGUN:
        begin_placing(bodies, order, offset, cursor)
        for body in range(len(line)):
            if offset[body] != NOWHERE:
                line_up(line, offset, cursor, body)
    while cursor[AT] < len(order) and cursor[ARENA] <= limit and looked < looks:
        body = order[cursor[AT]]
        cursor[AT] += 1
        if pinned[body] != NOWHERE:
            continue
        if len(line):
            count = from_line(lists, offset, scratch, barred, cursor[LINED], body)
        else:
            count = from_list(lists, offset, barred, body)
        offset[body] = tightest(barred, count, alignment[body])
        cursor[ARENA] = max(cursor[ARENA], offset[body] + size[body])
        looked += count + cursor[LINED]
        if len(line):
            line_up(line, offset, cursor, body)
    return looked


def from_list(lists: NeighbourLists, offset: Numbers, barred: Barred, body: int) -> int:
    """Lists what is barred to a body, neighbour by neighbour. Returns the number of ranges."""
    near, low, high, floors, ceilings = lists.near, lists.low, lists.high, barred.floors, barred.ceilings
    count = 0
    for k in range(lists.start[body], lists.start[body + 1]):
        x = offset[near[k]]
        if x != NOWHERE:
            ceilings[count], floors[count] = max(x + low[k], BELOW), x + high[k]
            count += 1
    return count


def from_line(lists: NeighbourLists, offset: Numbers, scratch: Line, barred: Barred, placed: int, body: int) -> int:
    """Lists the ranges of `from_list`, nearly sorted by offset. Returns their number. `placed` bodies stand in line.

    A mark is where a body stands in a list, counted from 1; the last place, if it stands there several times. Marks of
    other lists differ by the place, so none is ever erased. What is no hit is written over: no branch.
    """
    near, low, high, floors, ceilings = lists.near, lists.low, lists.high, barred.floors, barred.ceilings
    mark, line, hits = scratch.mark, scratch.line, scratch.hits
    first, last, hit_count = lists.start[body], lists.start[body + 1], 0
    for k in range(first, last):
        mark[near[k]] = k + 1
    for at in range(placed):
        k = mark[line[at]]
        hits[hit_count] = k
        hit_count += (k > first) & (k <= last)
    count = 0
    for at in range(hit_count):
        k = hits[at] - 1
        x = offset[near[k]]
        ceilings[count], floors[count] = max(x + low[k], BELOW), x + high[k]
        count += 1
        while k > first and near[k - 1] == near[k]:
            k -= 1
            ceilings[count], floors[count] = max(x + low[k], BELOW), x + high[k]
            count += 1
    return count


def line_up(line: Numbers, offset: Numbers, cursor: Numbers, body: int) -> None:
    """Puts a body into the line of those that are placed, by offset."""
    placed = cursor[LINED]
    x, to, behind = offset[body], 0, placed
    while to < behind:
        middle = (to + behind) // 2
        if offset[line[middle]] < x:
            to = middle + 1
        else:
            behind = middle
    for at in range(placed, to, -1):
        line[at] = line[at - 1]
    line[to] = body
    cursor[LINED] = placed + 1


def begin_placing(bodies: Bodies, order: Numbers, offset: Numbers, cursor: Numbers) -> None:
    """Resets the offsets that are to be found, from the cursor on. It gets the bytes of the arena of the others."""
    size, pinned, top = bodies.size, bodies.pinned, 0
    for at in range(cursor[AT], len(order)):
        offset[order[at]] = NOWHERE
    for body in range(len(size)):
        if pinned[body] != NOWHERE:
            offset[body] = pinned[body]
        if offset[body] != NOWHERE:
            top = max(top, offset[body] + size[body])
    cursor[ARENA], cursor[LINED] = top, 0


def tightest(barred: Barred, count: int, alignment: int) -> int:
    """Returns the offset to take: the lowest in the tightest gap that fits (the lowest such gap), else behind all."""
    floors, ceilings = barred.floors, barred.ceilings
    best, least, floor, first = NOWHERE, 0, 0, sort(floors, ceilings, barred.digits, count)
    for k in range(first, first + count):
        if ceilings[k] >= floor:
            offset = floor if alignment == 1 else -(-floor // alignment) * alignment
            spare = ceilings[k] - offset
            if spare >= 0 and (best == NOWHERE or spare < least):
                best, least = offset, spare
        floor = max(floor, floors[k])
    return best if best != NOWHERE else -(-floor // alignment) * alignment


def sort(floors: Numbers, ceilings: Numbers, digits: Numbers, count: int) -> int:
    """Sorts the ranges by ceiling, lowest first; equal ones keep their order. Returns where the first one stands now.

    A few by insertion. More are dealt by their highest bits, so that most stand near their place, and then inserted.
    Where too many have the same highest bits: by all digits, last digit first, to and fro between the halves of the
    columns.
    """
    falls, largest = 0, 0
    for k in range(count):
        largest = max(largest, ceilings[k] - BELOW)
        falls += k > 0 and ceilings[k] < ceilings[k - 1]
    if falls == 0:
        return 0
    if count <= FEW:
        insert_all(floors, ceilings, 0, count)
        return 0
    here, shift, width = 0, 0, 4
    while width < WIDEST and count >> (width + 1):
        width += 1
    mask = (1 << width) - 1
    while largest >> shift >> width:
        shift += 1
    if tally(ceilings, digits, count, here, shift, mask) <= MOST_PAIRS * count:
        deal(floors, ceilings, digits, count, here, shift, mask)
        insert_all(floors, ceilings, count, count)
        return count
    shift = 0
    while shift < _BITS and largest >> shift:
        tally(ceilings, digits, count, here, shift, mask)
        deal(floors, ceilings, digits, count, here, shift, mask)
        here, shift = count - here, shift + width
    return here


def insert_all(floors: Numbers, ceilings: Numbers, first: int, count: int) -> None:
    """Sorts by insertion what stands from `first` on."""
    for k in range(first + 1, first + count):
        ceiling, floor, to = ceilings[k], floors[k], k
        while to > first and ceilings[to - 1] > ceiling:
            ceilings[to], floors[to] = ceilings[to - 1], floors[to - 1]
            to -= 1
        ceilings[to], floors[to] = ceiling, floor


def tally(ceilings: Numbers, digits: Numbers, count: int, here: int, shift: int, mask: int) -> int:
    """Counts how often each digit of the ceilings occurs. Returns the pairs of ranges that have the same, twice."""
    pairs = 0
    for digit in range(mask + 1):
        digits[digit] = 0
    for k in range(here, here + count):
        digit = ((ceilings[k] - BELOW) >> shift) & mask
        pairs += 2 * digits[digit]
        digits[digit] += 1
    return pairs


def deal(floors: Numbers, ceilings: Numbers, digits: Numbers, count: int, here: int, shift: int, mask: int) -> None:
    """Moves the ranges from one half of the columns to the other, sorted by the digit that was counted."""
    to = count - here
    for digit in range(mask + 1):
        digits[digit], to = to, to + digits[digit]
    for k in range(here, here + count):
        digit = ((ceilings[k] - BELOW) >> shift) & mask
        to = digits[digit]
        digits[digit] = to + 1
        ceilings[to], floors[to] = ceilings[k], floors[k]


class Members(NamedTuple):
    """The chunks of bodies, by their begin: each takes the `room` bytes from `inner` on in its body.

    Each lives in [begin, end); those from `stop` on begin when it has ended. Body i has the members
    member[first[i] : first[i + 1]].
    """

    begin: Numbers
    end: Numbers
    stop: Numbers
    inner: Numbers
    room: Numbers
    first: Numbers
    member: Numbers


class SweepTree(NamedTuple):
    """Scratch, by member: the end of each that is placed, and where it begins.

    `reach` is a tournament of the largest such end in each block of members.
    """

    until: Numbers
    bottom: Numbers
    reach: Numbers


@kernel
def place_swept(
    bodies: Bodies, members: Members, order: Numbers, limit: int, offset: Numbers,
    tree: SweepTree, barred: Barred, cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Places bodies as `place_near` does, without lists of neighbours."""
    first, looked = members.first, 0
    if cursor[ARENA] == NOT_BEGUN:
        begin_placing(bodies, order, offset, cursor)
        begin_sweep(bodies, members, offset, tree)
    while cursor[AT] < len(order) and cursor[ARENA] <= limit and looked < looks:
        body = order[cursor[AT]]
        cursor[AT] += 1
        if bodies.pinned[body] == NOWHERE:
            count = 0
            for k in range(first[body], first[body + 1]):
                count = sweep(members, tree, barred, members.member[k], count)
            offset[body] = tightest(barred, count, bodies.alignment[body])
            enter(members, offset, tree, body)
            cursor[ARENA] = max(cursor[ARENA], offset[body] + bodies.size[body])
            looked += count + BLOCK
    return looked


def begin_sweep(bodies: Bodies, members: Members, offset: Numbers, tree: SweepTree) -> None:
    """Enters the bodies that have an offset into an empty tree."""
    for leaf in range(len(tree.reach)):
        tree.reach[leaf] = 0
    for k in range(len(tree.until)):
        tree.until[k] = 0
    for body in range(len(bodies.size)):
        if offset[body] != NOWHERE:
            enter(members, offset, tree, body)


def enter(members: Members, offset: Numbers, tree: SweepTree, body: int) -> None:
    """Enters a placed body into the tree."""
    end, reach = members.end, tree.reach
    for k in range(members.first[body], members.first[body + 1]):
        one = members.member[k]
        tree.until[one], tree.bottom[one] = end[one], offset[body] + members.inner[one]
        node = len(reach) // 2 + one // BLOCK
        while node and reach[node] < end[one]:
            reach[node] = end[one]
            node //= 2


def sweep(members: Members, tree: SweepTree, barred: Barred, one: int, count: int) -> int:
    """Adds the ranges that the placed members alive with this one bar to its body. Returns the number of ranges."""
    until, bottom, reach, floors, ceilings = tree.until, tree.bottom, tree.reach, barred.floors, barred.ceilings
    room, since, above, last = members.room, members.begin[one], members.inner[one], members.stop[one]
    behind = above + room[one]
    node = len(reach) // 2 + (last - 1) // BLOCK
    while node:
        block = (node - len(reach) // 2) * BLOCK
        for k in range(block, min(block + BLOCK, last)):
            if until[k] > since:
                ceilings[count], floors[count] = max(bottom[k] - behind, BELOW), bottom[k] + room[k] - above
                count += 1
        node = block_before(reach, node, since)
    return count


def block_before(reach: Numbers, node: int, since: int) -> int:
    """Returns the last leaf before this one that reaches beyond a tick, or 0."""
    while node > 1:
        if node % 2 and reach[node - 1] > since:
            node -= 1
            while node < len(reach) // 2:
                node = 2 * node + (reach[2 * node + 1] > since)
            return node
        node //= 2
    return 0
