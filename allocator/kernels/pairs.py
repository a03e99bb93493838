"""Depth-first search for a plan of bodies that are not rectangles and may interlock, within a capacity.

For each two bodies that meet, the distance between their offsets lies in one of a few gaps (ranges, both ends in it):
below the other, in a gap between its chunks, above it. Every body has a lowest and a highest offset, every pair a range
of gaps that are still possible; each tightens the others (bounds consistency). When no pair is violated with all bodies
at their lowest offsets, that is a plan. Else a violated pair is split: its gaps below, or its gaps above. (Disjunctive
branching, as in job shops: Carlier and Pinson 1989; with gaps in place of two orders.)

In each tick, what must lie between two heights has to fit between them (overload checking: Vilim 2004).
"""

from typing import NamedTuple

from allocator.kernels.numbers import fill, kernel
from allocator.machine_code.arrays import DoubleTable, Longs, Table

FOUND, EXHAUSTED, OUT_OF_NODES, OUT_OF_ROOM = range(4)
BY_REGRET, BY_STRAIN, BY_HEIGHT = range(3)
"""Which violated pair is split: the one that loses most either way; that, times how often its bodies failed; the lowest
one."""
SIZE, ALIGNMENT, PINNED, EDGE, HOME, LOWEST, HIGHEST, _, _, QUEUE, WAITS = range(11)
"""Rows of `bodies`. Edge, home: where the pairs and the cliques of a body begin in those lists. The lowest and highest
offset that it can have; two rows of stamps; a ring of bodies that have moved; whether the body stands there."""
ONE, OTHER, GAP, FIRST, LAST = range(5)
"""Rows of `pairs`, with two rows of stamps behind: two bodies; where the gaps of their distance (offset of the other,
less that of the one) begin; the first and the last gap that is possible."""
STAMP = 2
"""The distance from a row that changes to its row of stamps: the level in which each cell was last put on the trail."""
LOW, HIGH = range(2)
"""Rows of `gaps`: the smallest and the largest distance in a gap; FAR where there is no limit."""
OWNER, SHIFT, BULK, BOTTOM, TOP, ORDER = range(6)
"""Rows of `slots`, which stand clique by clique: the body whose bytes these are; where they begin in it; how many they
are; the lowest begin and the highest end; the slots by highest end, as it was when last looked at."""
MEMBER, DIRTY = range(2)
"""Rows of `cliques`, of bytes alive in one tick: where their slots begin; did a body move since it was checked?"""
STRAIN, STIR = range(2)
"""Rows of `weights`: how often, and how lately, each body failed (behind them the worth of a failure now); what its
violations count."""
TRAIL, DEPTH, NODES, FAILED, LEVEL, NEXT, WAITING, SPLIT = range(8)
"""Cells of `cursor`: lengths of trail and decisions; nodes; whether the node is dead; a number that no other node had;
the queue's first place and its length; the gap below which the chosen pair is split."""
FAR = 1 << 62
STEPS = 10_000
"""Bodies whose pairs are looked at in one node. Bodies of mixed alignments can push each other up for long."""


class PairSearch(NamedTuple):
    """The arrays that a search reads and changes; see the rows above.

    One column a body, pair, clique ..., and one behind.
    """

    bodies: Table
    edges: Longs
    """Pairs of each body."""
    pairs: Table
    gaps: Table
    slots: Table
    cliques: Table
    home: Longs
    """Cliques of each body."""
    weights: DoubleTable
    trail: Table
    """(whether a pair changed, row, place, old value)."""
    decisions: Table
    """(pair, length of the trail before, gap below which it was split, side taken, whether that was the second)."""
    cursor: Longs


@kernel
def explore(s: PairSearch, manner: int, nodes: int) -> int:
    """Continues a search for at most `nodes` nodes. Once FOUND, the lowest offsets are a plan."""
    cursor = s.cursor
    limit, reserve = cursor[NODES] + nodes, 2 * (s.bodies.shape[1] + s.pairs.shape[1])
    while True:
        pair = -1
        if cursor[FAILED] == 0 and cursor[WAITING] == 0:
            pair = choose(s.bodies, s.pairs, s.gaps, s.weights, cursor, manner)
            if pair < 0:
                return FOUND
        if cursor[NODES] >= limit:
            return OUT_OF_NODES
        if cursor[TRAIL] + reserve > s.trail.shape[0]:
            return OUT_OF_ROOM
        if pair >= 0:
            split(s, pair)
        elif cursor[FAILED] != 0 and not turn_back(s):
            return EXHAUSTED
        propagate(s)
        cursor[NODES] += 1


@kernel
def prepare(s: PairSearch, capacity: int) -> None:
    """Lets the search begin: nothing is known but the capacity."""
    bodies, pairs, cursor = s.bodies, s.pairs, s.cursor
    count, total = bodies.shape[1] - 1, pairs.shape[1] - 1
    fill(cursor, 0)
    cursor[LEVEL] = 1
    fill(s.cliques[DIRTY], 1)
    for row in range(LOWEST + STAMP, WAITS + 1):
        fill(bodies[row], 0)
    for row in range(FIRST + STAMP, LAST + STAMP + 1):
        fill(pairs[row], 0)
    for pair in range(total):
        pairs[FIRST, pair], pairs[LAST, pair] = pairs[GAP, pair], pairs[GAP, pair + 1] - 1
    for body in range(count):
        latest = (capacity - bodies[SIZE, body]) // bodies[ALIGNMENT, body] * bodies[ALIGNMENT, body]
        pin = bodies[PINNED, body]
        bodies[LOWEST, body], bodies[HIGHEST, body] = max(pin, 0), latest if pin < 0 else min(pin, latest)
        if bodies[LOWEST, body] > bodies[HIGHEST, body]:
            cursor[FAILED] = 1
        wait(bodies, cursor, body)
    propagate(s)


def choose(bodies: Table, pairs: Table, gaps: Table, weights: DoubleTable, cursor: Longs, manner: int) -> int:
    """Returns the violated pair to split next; -1 where there is none: all bodies can lie at their lowest offsets."""
    best, most = -1, 0.0
    for pair in range(pairs.shape[1] - 1):
        gap, last = pairs[FIRST, pair], pairs[LAST, pair]
        if gap == last:
            continue
        apart = bodies[LOWEST, pairs[OTHER, pair]] - bodies[LOWEST, pairs[ONE, pair]]
        while gap < last and gaps[LOW, gap + 1] <= apart:
            gap += 1
        if apart <= gaps[HIGH, gap]:
            continue
        own = worth(bodies, pairs, gaps, weights, pair, gap, manner)
        if best < 0 or own > most:
            best, most = pair, own
            cursor[SPLIT] = gap
    return best


def loss(bodies: Table, weights: DoubleTable, body: int, rise: int) -> float:
    """Returns the share of the offsets of a body that are lost if it rises."""
    return float(rise / (bodies[HIGHEST, body] - bodies[LOWEST, body] + 1) * weights[STIR, body])


def worth(bodies: Table, pairs: Table, gaps: Table, weights: DoubleTable, pair: int, gap: int, manner: int) -> float:
    """Returns how urgent it is to split a violated pair below a gap; larger is more urgent."""
    one, other = pairs[ONE, pair], pairs[OTHER, pair]
    apart = bodies[LOWEST, other] - bodies[LOWEST, one]
    up = loss(bodies, weights, other, gaps[LOW, gap + 1] - apart)
    down = loss(bodies, weights, one, apart - gaps[HIGH, gap])
    regret = min(up, down) + 0.1 * max(up, down)
    if manner == BY_HEIGHT:
        return regret / 1e6 - float(min(bodies[LOWEST, one], bodies[LOWEST, other]))
    if manner == BY_STRAIN:
        return float(regret * (weights[STRAIN, one] + weights[STRAIN, other] + 0.01 * weights[STRAIN, -1]))
    return regret


def split(s: PairSearch, pair: int) -> None:
    """Takes the first of two branches: the side on which less is lost."""
    cursor, gap = s.cursor, s.cursor[SPLIT]
    one, other = s.pairs[ONE, pair], s.pairs[OTHER, pair]
    apart = s.bodies[LOWEST, other] - s.bodies[LOWEST, one]
    up = loss(s.bodies, s.weights, other, s.gaps[LOW, gap + 1] - apart)
    down = loss(s.bodies, s.weights, one, apart - s.gaps[HIGH, gap])
    depth = cursor[DEPTH]
    s.decisions[depth, 0], s.decisions[depth, 1], s.decisions[depth, 2] = pair, cursor[TRAIL], gap
    s.decisions[depth, 3], s.decisions[depth, 4] = int(up <= down), 0
    cursor[DEPTH] = depth + 1
    take_side(s.bodies, s.pairs, s.trail, s.decisions, cursor, depth)


def take_side(bodies: Table, pairs: Table, trail: Table, decisions: Table, cursor: Longs, depth: int) -> None:
    """Limits the distance of a pair to the gaps above the split, or to the others."""
    pair, gap = decisions[depth, 0], decisions[depth, 2]
    cursor[LEVEL] += 1
    if decisions[depth, 3] == 1:
        assign(pairs, trail, cursor, 1, FIRST, pair, gap + 1)
    else:
        assign(pairs, trail, cursor, 1, LAST, pair, gap)
    wait(bodies, cursor, pairs[ONE, pair])


def turn_back(s: PairSearch) -> bool:
    """Undoes decisions up to the last one whose other side is open, and takes that; False where none is."""
    cursor, decisions, trail = s.cursor, s.decisions, s.trail
    fill(s.bodies[WAITS], 0)
    cursor[WAITING] = 0
    depth = cursor[DEPTH]
    while depth > 0:
        depth -= 1
        for k in range(cursor[TRAIL] - 1, decisions[depth, 1] - 1, -1):
            if trail[k, 0] == 1:
                s.pairs[trail[k, 1], trail[k, 2]] = trail[k, 3]
            else:
                s.bodies[trail[k, 1], trail[k, 2]] = trail[k, 3]
        cursor[TRAIL] = decisions[depth, 1]
        if decisions[depth, 4] == 0:
            decisions[depth, 3], decisions[depth, 4] = 1 - decisions[depth, 3], 1
            cursor[DEPTH], cursor[FAILED] = depth + 1, 0
            take_side(s.bodies, s.pairs, trail, decisions, cursor, depth)
            return True
    cursor[DEPTH] = 0
    return False


def assign(table: Table, trail: Table, cursor: Longs, is_pair: int, row: int, place: int, value: int) -> None:
    """Assigns a cell of a table, and keeps on the trail what stood there when this level began."""
    if table[row + STAMP, place] != cursor[LEVEL]:
        k = cursor[TRAIL]
        trail[k, 0], trail[k, 1], trail[k, 2], trail[k, 3] = is_pair, row, place, table[row, place]
        cursor[TRAIL] = k + 1
        table[row + STAMP, place] = cursor[LEVEL]
    table[row, place] = value


def wait(bodies: Table, cursor: Longs, body: int) -> None:
    """Puts a body that has moved, or whose pair changed, into the queue."""
    if bodies[WAITS, body] == 0:
        bodies[WAITS, body] = 1
        bodies[QUEUE, (cursor[NEXT] + cursor[WAITING]) % (bodies.shape[1] - 1)] = body
        cursor[WAITING] += 1


def propagate(s: PairSearch) -> None:
    """Looks at the pairs of all that moved, then at their cliques, until nothing moves or the node is dead."""
    bodies, cliques, cursor, steps = s.bodies, s.cliques, s.cursor, STEPS
    while cursor[FAILED] == 0 and cursor[WAITING] > 0 and steps > 0:
        body = bodies[QUEUE, cursor[NEXT]]
        bodies[WAITS, body] = 0
        cursor[NEXT] = (cursor[NEXT] + 1) % (bodies.shape[1] - 1)
        cursor[WAITING] -= 1
        for k in range(bodies[HOME, body], bodies[HOME, body + 1]):
            cliques[DIRTY, s.home[k]] = 1
        for k in range(bodies[EDGE, body], bodies[EDGE, body + 1]):
            if cursor[FAILED] == 0:
                tighten(bodies, s.pairs, s.gaps, s.weights, s.trail, cursor, s.edges[k])
        steps -= 1
    clique = 0
    while cursor[FAILED] == 0 and clique < cliques.shape[1] - 1:
        if cliques[DIRTY, clique] != 0:
            cliques[DIRTY, clique] = 0
            sort_slots(bodies, s.slots, cliques[MEMBER, clique], cliques[MEMBER, clique + 1])
            check_clique(s.slots, s.weights, cursor, cliques[MEMBER, clique], cliques[MEMBER, clique + 1])
        clique += 1


def tighten(
    bodies: Table, pairs: Table, gaps: Table, weights: DoubleTable, trail: Table, cursor: Longs, pair: int
) -> None:
    """Narrows the gaps that two bodies still allow, and the offsets that these gaps allow."""
    one, other = pairs[ONE, pair], pairs[OTHER, pair]
    least = bodies[LOWEST, other] - bodies[HIGHEST, one]
    most = bodies[HIGHEST, other] - bodies[LOWEST, one]
    first, last = pairs[FIRST, pair], pairs[LAST, pair]
    while first <= last and gaps[HIGH, first] < least:
        first += 1
    while first <= last and gaps[LOW, last] > most:
        last -= 1
    if first > last:
        fail(weights, cursor, one, other)
        return
    if first != pairs[FIRST, pair]:
        assign(pairs, trail, cursor, 1, FIRST, pair, first)
    if last != pairs[LAST, pair]:
        assign(pairs, trail, cursor, 1, LAST, pair, last)
    low, high = gaps[LOW, first], gaps[HIGH, last]
    move(bodies, trail, cursor, other, bodies[LOWEST, one] + low, bodies[HIGHEST, one] + high)
    move(bodies, trail, cursor, one, bodies[LOWEST, other] - high, bodies[HIGHEST, other] - low)
    if cursor[FAILED] != 0:
        fail(weights, cursor, one, other)


def move(bodies: Table, trail: Table, cursor: Longs, body: int, lowest: int, highest: int) -> None:
    """Narrows the offsets of a body to a range."""
    alignment = bodies[ALIGNMENT, body]
    if lowest > bodies[LOWEST, body]:
        assign(bodies, trail, cursor, 0, LOWEST, body, -(-lowest // alignment) * alignment)
        wait(bodies, cursor, body)
    if highest < bodies[HIGHEST, body]:
        assign(bodies, trail, cursor, 0, HIGHEST, body, highest // alignment * alignment)
        wait(bodies, cursor, body)
    if bodies[LOWEST, body] > bodies[HIGHEST, body]:
        cursor[FAILED] = 1


def check_clique(slots: Table, weights: DoubleTable, cursor: Longs, begin: int, end: int) -> None:
    """Fails the node if what must lie between two heights has more bytes than lie between them."""
    for k in range(begin, end):
        low = slots[BOTTOM, slots[ORDER, k]]
        need = low
        for m in range(begin, end):
            slot = slots[ORDER, m]
            if slots[BOTTOM, slot] >= low:
                need += slots[BULK, slot]
                if need > slots[TOP, slot]:
                    fail(weights, cursor, slots[OWNER, slot], slots[OWNER, slots[ORDER, k]])
                    return


def sort_slots(bodies: Table, slots: Table, begin: int, end: int) -> None:
    """Updates the offsets of the slots of a clique, and sorts them by highest end; they are mostly sorted already."""
    for k in range(begin, end):
        slot = slots[ORDER, k]
        body = slots[OWNER, slot]
        slots[BOTTOM, slot] = bodies[LOWEST, body] + slots[SHIFT, slot]
        top = bodies[HIGHEST, body] + slots[SHIFT, slot] + slots[BULK, slot]
        slots[TOP, slot] = top
        place = k
        while place > begin and slots[TOP, slots[ORDER, place - 1]] > top:
            slots[ORDER, place] = slots[ORDER, place - 1]
            place -= 1
        slots[ORDER, place] = slot


def fail(weights: DoubleTable, cursor: Longs, one: int, other: int) -> None:
    """Fails the node because of two bodies; later failures count more."""
    last = weights.shape[1] - 1
    cursor[FAILED] = 1
    weights[STRAIN, one] += weights[STRAIN, last]
    weights[STRAIN, other] += weights[STRAIN, last]
    weights[STRAIN, last] *= 1.02
    if weights[STRAIN, last] > 1e100:
        for body in range(last + 1):
            weights[STRAIN, body] *= 1e-100
