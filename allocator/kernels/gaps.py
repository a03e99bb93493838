"""Best-gap placement: one by one, each into the tightest gap between those placed before that it must not overlap.

(Greedy by size for offset calculation, Pisarchyk and Lee 2020; any order will do.) What is placed is a body: a chain of
overwrites, which moves as one. What a body meets bars a range of offsets to it: those above a `ceiling` (the highest
offset below) and below a `floor` (the lowest offset above). What bars the way is found by one of three searches:
`place_near` has lists of neighbours, `place_swept` looks for all that is alive at the same time, and `place_covered`
looks for the bytes that are in use then.
"""

from allocator.kernels.numbers import Numbers, kernel

NOWHERE = -1
"""Offset of a body that has none; pinned offset of one that may lie anywhere."""
BELOW = -1
"""Ceiling of a range in which offset 0 lies: there is no gap below it."""
FEW = 32
"""Up to so many ranges are sorted by insertion."""
WIDEST = 11
"""Bits of a digit that a pass of the sort looks at, at most: digits stay in the cache of the processor."""
DIGITS = 1 << WIDEST
BLOCK = 16
"""Members of one leaf of the tree of a sweep."""


@kernel
def place_near(
    start: Numbers, near: Numbers, low: Numbers, high: Numbers,
    size: Numbers, alignment: Numbers, pinned: Numbers, order: Numbers, kept: int, limit: int, offset: Numbers,
    mark: Numbers, line: Numbers, hits: Numbers, floors: Numbers, ceilings: Numbers, digits: Numbers,
) -> int:  # fmt: skip
    """Places all bodies, pinned ones first, then in this order. Returns the bytes of the arena.

    The neighbours of body i are near[start[i] : start[i + 1]], sorted. Where neighbour near[k] lies at x, it bars the
    offsets above x + low[k] and below x + high[k]; chains may stand there several times.

    The first `kept` of the order keep the offsets that they have. Ends early, with the rest nowhere, as soon as the
    arena is above `limit`. Scratch: twice as many floors and ceilings as a list is long, DIGITS digits; a mark, which
    is 0 at first, for each body; a place in line and a hit for each too, or none where bodies have few neighbours.
    """
    top, placed = begin_placing(size, pinned, order, kept, offset), 0
    for body in range(len(line)):
        if offset[body] != NOWHERE:
            line_up(line, offset, placed, body)
            placed += 1
    for at in range(kept, len(order)):
        body = order[at]
        if top > limit:
            break
        if pinned[body] != NOWHERE:
            continue
        if len(line):
            count = from_line(start, near, low, high, offset, mark, line, hits, floors, ceilings, placed, body)
        else:
            count = from_list(start, near, low, high, offset, floors, ceilings, body)
        offset[body] = tightest(floors, ceilings, digits, count, alignment[body])
        top = max(top, offset[body] + size[body])
        if len(line):
            line_up(line, offset, placed, body)
            placed += 1
    return top


def from_list(
    start: Numbers, near: Numbers, low: Numbers, high: Numbers, offset: Numbers,
    floors: Numbers, ceilings: Numbers, body: int,
) -> int:  # fmt: skip
    """Lists what is barred to a body, neighbour by neighbour. Returns the number of ranges."""
    count = 0
    for k in range(start[body], start[body + 1]):
        x = offset[near[k]]
        if x != NOWHERE:
            ceilings[count], floors[count] = max(x + low[k], BELOW), x + high[k]
            count += 1
    return count


def from_line(
    start: Numbers, near: Numbers, low: Numbers, high: Numbers, offset: Numbers, mark: Numbers, line: Numbers,
    hits: Numbers, floors: Numbers, ceilings: Numbers, placed: int, body: int,
) -> int:  # fmt: skip
    """Lists the ranges of `from_list`, nearly sorted by offset. Returns their number. `placed` bodies stand in line.

    A mark is where a body stands in a list, counted from 1; the last place, if it stands there several times. Marks of
    other lists differ by the place, so none is ever erased. What is no hit is written over: no branch.
    """
    first, last, hit_count = start[body], start[body + 1], 0
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


def line_up(line: Numbers, offset: Numbers, placed: int, body: int) -> None:
    """Puts a body into the line of those that are placed, by offset."""
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


def begin_placing(size: Numbers, pinned: Numbers, order: Numbers, kept: int, offset: Numbers) -> int:
    """Resets the offsets that are to be found. Returns the bytes of the arena of the others."""
    top = 0
    for at in range(kept, len(order)):
        offset[order[at]] = NOWHERE
    for body in range(len(size)):
        if pinned[body] != NOWHERE:
            offset[body] = pinned[body]
        if offset[body] != NOWHERE:
            top = max(top, offset[body] + size[body])
    return top


def tightest(floors: Numbers, ceilings: Numbers, digits: Numbers, count: int, alignment: int) -> int:
    """Returns the offset to take: the lowest in the tightest gap that fits (the lowest such gap), else behind all."""
    best, least, floor, first = NOWHERE, 0, 0, sort(floors, ceilings, digits, count)
    for k in range(first, first + count):
        if ceilings[k] >= floor:
            offset = floor if alignment == 1 else -(-floor // alignment) * alignment
            spare = ceilings[k] - offset
            if spare >= 0 and (best == NOWHERE or spare < least):
                best, least = offset, spare
        floor = max(floor, floors[k])
    return best if best != NOWHERE else -(-floor // alignment) * alignment


def sort(floors: Numbers, ceilings: Numbers, digits: Numbers, count: int) -> int:
    """Returns the ranges by ceiling, lowest first. Returns where the first one stands now.

    By digits, last digit first, to and fro between the two halves of the columns; a few by insertion.
    """
    falls = 0
    for k in range(1, count):
        falls += ceilings[k] < ceilings[k - 1]
    if falls == 0:
        return 0
    if count <= FEW:
        insert_all(floors, ceilings, count)
        return 0
    here, shift, width, largest = 0, 0, 4, 0
    for k in range(count):
        largest = max(largest, ceilings[k] - BELOW)
    while width < WIDEST and count >> (width + 1):
        width += 1
    while largest >> shift:
        deal(floors, ceilings, digits, count, here, shift, (1 << width) - 1)
        here, shift = count - here, shift + width
    return here


def insert_all(floors: Numbers, ceilings: Numbers, count: int) -> None:
    """Sorts by insertion."""
    for k in range(1, count):
        ceiling, floor, to = ceilings[k], floors[k], k
        while to > 0 and ceilings[to - 1] > ceiling:
            ceilings[to], floors[to] = ceilings[to - 1], floors[to - 1]
            to -= 1
        ceilings[to], floors[to] = ceiling, floor


def deal(floors: Numbers, ceilings: Numbers, digits: Numbers, count: int, here: int, shift: int, mask: int) -> None:
    """Moves the ranges from one half of the columns to the other, sorted by one digit of the ceiling."""
    for digit in range(mask + 1):
        digits[digit] = 0
    for k in range(here, here + count):
        digits[((ceilings[k] - BELOW) >> shift) & mask] += 1
    to = count - here
    for digit in range(mask + 1):
        digits[digit], to = to, to + digits[digit]
    for k in range(here, here + count):
        digit = ((ceilings[k] - BELOW) >> shift) & mask
        to = digits[digit]
        digits[digit] = to + 1
        ceilings[to], floors[to] = ceilings[k], floors[k]


@kernel
def place_swept(
    begin: Numbers, end: Numbers, stop: Numbers, inner: Numbers, room: Numbers, first: Numbers, member: Numbers,
    size: Numbers, alignment: Numbers, pinned: Numbers, order: Numbers, kept: int, limit: int, offset: Numbers,
    until: Numbers, bottom: Numbers, reach: Numbers, floors: Numbers, ceilings: Numbers, digits: Numbers,
) -> int:  # fmt: skip
    """Places bodies as `place_near` does, without lists of neighbours.

    The members of bodies stand by their begin: each lives in [begin, end) and takes the `room` bytes from `inner` on in
    its body; those from `stop` on begin when it has ended. Body i has the members member[first[i] : first[i + 1]].
    Scratch, by member: the end of each that is placed, and where it begins; `reach` is a tournament of the largest such
    end in each block of members.
    """
    top = begin_placing(size, pinned, order, kept, offset)
    for leaf in range(len(reach)):
        reach[leaf] = 0
    for k in range(len(until)):
        until[k] = 0
    for body in range(len(size)):
        if offset[body] != NOWHERE:
            enter(end, inner, first, member, offset, until, bottom, reach, body)
    for at in range(kept, len(order)):
        body = order[at]
        if top > limit:
            break
        if pinned[body] == NOWHERE:
            count = 0
            for k in range(first[body], first[body + 1]):
                count = sweep(begin, stop, inner, room, until, bottom, reach, floors, ceilings, member[k], count)
            offset[body] = tightest(floors, ceilings, digits, count, alignment[body])
            enter(end, inner, first, member, offset, until, bottom, reach, body)
            top = max(top, offset[body] + size[body])
    return top


def enter(
    end: Numbers, inner: Numbers, first: Numbers, member: Numbers, offset: Numbers,
    until: Numbers, bottom: Numbers, reach: Numbers, body: int,
) -> None:  # fmt: skip
    """Enters a placed body into the tree."""
    for k in range(first[body], first[body + 1]):
        one = member[k]
        until[one], bottom[one] = end[one], offset[body] + inner[one]
        node = len(reach) // 2 + one // BLOCK
        while node and reach[node] < end[one]:
            reach[node] = end[one]
            node //= 2


def sweep(
    begin: Numbers, stop: Numbers, inner: Numbers, room: Numbers, until: Numbers, bottom: Numbers, reach: Numbers,
    floors: Numbers, ceilings: Numbers, one: int, count: int,
) -> int:  # fmt: skip
    """Adds the ranges that the placed members alive with this one bar to its body. Returns the number of ranges."""
    since, behind, above, last = begin[one], inner[one] + room[one], inner[one], stop[one]
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


@kernel
def place_covered(
    since: Numbers, until: Numbers, inner: Numbers, room: Numbers, first: Numbers, member: Numbers,
    size: Numbers, alignment: Numbers, pinned: Numbers, order: Numbers, kept: int, limit: int, offset: Numbers,
    leaves: int, nodes: Numbers, bottom: Numbers, top: Numbers, behind: Numbers,
    floors: Numbers, ceilings: Numbers, digits: Numbers,
) -> int:  # fmt: skip
    """Places bodies as `place_near` does, with a tree over time that knows which bytes are in use.

    Member k lives in the leaves [since[k], until[k]) of the tree. Each node has two lists of ranges that do not touch,
    lowest first: list 2 k is what is in use in all of node k (but for what the nodes above it have), list 2 k + 1 is
    what is in use anywhere in it. A list is a link behind[list]; a range is bytes [bottom, top), and a link; 0 ends it.
    Ranges that came to nothing hang on list 0, and the next new one is bottom[0]. Scratch: `nodes`, four a level.
    """
    highest = begin_placing(size, pinned, order, kept, offset)
    for k in range(4 * leaves):
        behind[k] = 0
    bottom[0] = 4 * leaves
    for body in range(len(size)):
        if offset[body] != NOWHERE:
            cover(since, until, inner, room, first, member, offset, leaves, nodes, bottom, top, behind, body)
    for at in range(kept, len(order)):
        body = order[at]
        if highest > limit:
            break
        if pinned[body] == NOWHERE:
            count = 0
            for k in range(first[body], first[body + 1]):
                one = member[k]
                list_count = find_nodes(leaves, since[one], until[one], nodes)
                count = from_tree(
                    inner[one], inner[one] + room[one], nodes, list_count, bottom, top, behind, floors, ceilings, count
                )
            offset[body] = tightest(floors, ceilings, digits, count, alignment[body])
            cover(since, until, inner, room, first, member, offset, leaves, nodes, bottom, top, behind, body)
            highest = max(highest, offset[body] + size[body])
    return highest


def find_nodes(leaves: int, since: int, until: int, nodes: Numbers) -> int:
    """Lists the lists that describe some leaves: 2 k + 1 for the largest nodes in them, 2 k for those above.

    Gives their number.
    """
    low, high, count = leaves + since, leaves + until, 0
    while low < high:
        if low % 2:
            nodes[count], count, low = 2 * low + 1, count + 1, low + 1
        if high % 2:
            nodes[count], count, high = 2 * high - 1, count + 1, high - 1
        low, high = low // 2, high // 2
    low, high, width = (leaves + since) // 2, (leaves + until - 1) // 2, 2
    while low:
        is_cut = low * width < leaves + since
        if is_cut:
            nodes[count], count = 2 * low, count + 1
        if (high + 1) * width > leaves + until and not (is_cut and low == high):
            nodes[count], count = 2 * high, count + 1
        low, high, width = low // 2, high // 2, 2 * width
    return count


def from_tree(
    above: int, behind_it: int, nodes: Numbers, list_count: int, bottom: Numbers, top: Numbers, behind: Numbers,
    floors: Numbers, ceilings: Numbers, count: int,
) -> int:  # fmt: skip
    """Adds what these lists bar to the body in which a member has bytes [above, behind_it). Returns the number."""
    for k in range(list_count):
        at = behind[nodes[k]]
        while at:
            ceilings[count], floors[count] = max(bottom[at] - behind_it, BELOW), top[at] - above
            count += 1
            at = behind[at]
    return count


def cover(
    since: Numbers, until: Numbers, inner: Numbers, room: Numbers, first: Numbers, member: Numbers, offset: Numbers,
    leaves: int, nodes: Numbers, bottom: Numbers, top: Numbers, behind: Numbers, body: int,
) -> None:  # fmt: skip
    """Enters a placed body into the tree."""
    for k in range(first[body], first[body + 1]):
        one = member[k]
        low = offset[body] + inner[one]
        for at in range(find_nodes(leaves, since[one], until[one], nodes)):
            add_range(bottom, top, behind, nodes[at] | 1, low, low + room[one])
            if nodes[at] % 2:
                add_range(bottom, top, behind, nodes[at] - 1, low, low + room[one])


def add_range(bottom: Numbers, top: Numbers, behind: Numbers, link: int, low: int, high: int) -> None:
    """Adds bytes [low, high) to a list, and joins what then touches."""
    while behind[link] and top[behind[link]] < low:
        link = behind[link]
    current = behind[link]
    if not current or bottom[current] > high:
        new = behind[0]
        if new:
            behind[0] = behind[new]
        else:
            new = bottom[0]
            bottom[0] = new + 1
        bottom[new], top[new], behind[new], behind[link] = low, high, current, new
        return
    high, above = max(high, top[current]), behind[current]
    while above and bottom[above] <= high:
        high = max(high, top[above])
        behind[current], behind[above], behind[0] = behind[above], behind[0], above
        above = behind[current]
    bottom[current], top[current] = min(bottom[current], low), high
