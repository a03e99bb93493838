"""Depth-first search for a plan of bodies that may lie in each other's notches, within a capacity.

For each two bodies that meet, the distance between their offsets lies in one of a few gaps (ranges, both ends in it):
below the other, in one of its notches, above it. Every body has a lowest and a highest offset, every pair a range of
gaps that are still possible; each tightens the others (bounds consistency). When no pair is violated with all bodies
at their lowest offsets, that is a plan. Else a violated pair is split: its gaps below, or its gaps above. (Disjunctive
branching, as in job shops: Carlier and Pinson 1989; with gaps in place of two orders.)

In each tick, what must lie between two heights has to fit between them (overload checking: Vilim 2004).
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

Ints = NDArray[Any]
Floats = NDArray[Any]
FOUND, EXHAUSTED, OUT_OF_NODES, OUT_OF_ROOM = range(4)
BY_REGRET, BY_STRAIN, BY_HEIGHT = range(3)
"""Which violated pair is split: the one that loses most either way; that, times how often its bodies failed; the lowest
one."""
SIZE, ALIGNMENT, PINNED, EDGE, HOME = range(5)
"""Rows of `bodies`. Edge, home: where the pairs and the cliques of a body begin in those lists."""
ONE, OTHER, GAP = range(3)
"""Rows of `pairs`: two bodies; where the gaps of their distance (offset of the other, less that of the one) begin."""
LOW, HIGH = range(2)
"""Rows of `gaps`: the smallest and the largest distance in a gap; FAR where there is no limit."""
OWNER, SHIFT, BULK = range(3)
"""Rows of `slots`: the body whose bytes these are; where they begin in it; how many they are."""
TRAIL, DEPTH, NODES, FAILED, LEVEL, NEXT, WAITING, SPLIT = range(8)
"""Cells of `cursor`: lengths of trail and decisions; nodes; whether the node is dead; a number that no other node had;
the queue's first place and its length; the gap below which the chosen pair is split."""
FAR = 1 << 60
STEPS = 10_000
"""Bodies whose pairs are looked at in one node. Bodies of mixed alignments can push each other up for long."""


class Search(NamedTuple):
    """What a search reads and changes; see the rows above. One column a body, pair, gap or slot."""

    bodies: Ints
    edges: Ints
    pairs: Ints
    gaps: Ints
    slots: Ints
    """Bytes alive in a tick (or in conflict with each other), clique by clique."""
    clique: Ints
    """Where the slots of each clique begin."""
    home: Ints
    order: Ints
    """Slots of each clique by the highest place of their ends, as it was when last looked at."""
    span: Ints
    """Room to work in: the lowest begin and the highest end of each slot."""
    dirty: Ints
    """Of each clique: did a body in it move since it was checked?"""
    queue: Ints
    """A ring of bodies whose pairs must be looked at; behind it, of each body, whether it stands there."""
    state: Ints
    """Lowest offsets of the bodies; highest offsets; the first gap that is possible for each pair; the last."""
    stamp: Ints
    """The level in which each cell of the state was last put on the trail."""
    strain: Floats
    """Of each body: how often, and how lately, it failed; behind them the worth of a failure now."""
    stir: Floats
    """Of each body: what its violations count."""
    trail: Ints
    """(cell of the state, old value)."""
    decisions: Ints
    """(pair, length of the trail before, gap below which it was split, side taken, whether that was the second)."""
    cursor: Ints


def explore(s: Search, manner: int, nodes: int) -> int:
    """Goes on with a search for at most `nodes` nodes. Once FOUND, the first cells of the state are the offsets."""
    cursor = s.cursor
    limit = cursor[NODES] + nodes
    while True:
        pair = -1
        if cursor[FAILED] == 0 and cursor[WAITING] == 0:
            pair = choose(s, manner)
            if pair < 0:
                return FOUND
        if cursor[NODES] >= limit:
            return OUT_OF_NODES
        if cursor[TRAIL] + s.state.size > s.trail.shape[0]:
            return OUT_OF_ROOM
        if pair >= 0:
            split(s, pair)
        elif cursor[FAILED] != 0 and not turn_back(s):
            return EXHAUSTED
        propagate(s)
        cursor[NODES] += 1


def prepare(s: Search, capacity: int) -> None:
    """Lets the search begin: nothing is known but the capacity and the gaps that `state` allows."""
    bodies, state, count = s.bodies, s.state, s.bodies.shape[1] - 1
    s.cursor[:] = 0
    s.stamp[:] = 0
    s.queue[:] = 0
    s.dirty[:] = 1
    for body in range(count):
        latest = (capacity - bodies[SIZE, body]) // bodies[ALIGNMENT, body] * bodies[ALIGNMENT, body]
        pin = bodies[PINNED, body]
        state[body], state[count + body] = max(pin, 0), latest if pin < 0 else min(pin, latest)
        if state[body] > state[count + body]:
            s.cursor[FAILED] = 1
        wait(s, body)
    s.cursor[LEVEL] = 1
    if s.cursor[FAILED] == 0:
        propagate(s)


def choose(s: Search, manner: int) -> int:
    """The violated pair to split next; -1 where there is none: all bodies can lie at their lowest offsets."""
    pairs, gaps, state = s.pairs, s.gaps, s.state
    count, total = s.bodies.shape[1] - 1, s.pairs.shape[1] - 1
    best, most = -1, 0.0
    for pair in range(total):
        first, last = state[2 * count + pair], state[2 * count + total + pair]
        if first == last:
            continue
        apart = state[pairs[OTHER, pair]] - state[pairs[ONE, pair]]
        while first < last and gaps[LOW, first + 1] <= apart:
            first += 1
        if apart <= gaps[HIGH, first]:
            continue
        own = worth(s, pair, first, manner)
        if best < 0 or own > most:
            best, most = pair, own
            s.cursor[SPLIT] = first
    return best


def loss(s: Search, body: int, rise: int) -> float:
    """Which share of the places of a body are lost if it rises."""
    count = s.bodies.shape[1] - 1
    return float(rise) / float(s.state[count + body] - s.state[body] + 1) * s.stir[body]


def worth(s: Search, pair: int, gap: int, manner: int) -> float:
    """How urgent it is to split a violated pair below a gap; larger is more urgent."""
    one, other = s.pairs[ONE, pair], s.pairs[OTHER, pair]
    apart = s.state[other] - s.state[one]
    up, down = loss(s, other, s.gaps[LOW, gap + 1] - apart), loss(s, one, apart - s.gaps[HIGH, gap])
    regret = min(up, down) + 0.1 * max(up, down)
    if manner == BY_HEIGHT:
        return regret / 1e6 - float(min(s.state[one], s.state[other]))
    if manner == BY_STRAIN:
        return regret * (s.strain[one] + s.strain[other] + 0.01 * s.strain[-1])
    return regret


def split(s: Search, pair: int) -> None:
    """The first of two branches: the side on which less is lost."""
    cursor, gap = s.cursor, s.cursor[SPLIT]
    one, other = s.pairs[ONE, pair], s.pairs[OTHER, pair]
    apart = s.state[other] - s.state[one]
    up, down = loss(s, other, s.gaps[LOW, gap + 1] - apart), loss(s, one, apart - s.gaps[HIGH, gap])
    depth = cursor[DEPTH]
    s.decisions[depth, 0], s.decisions[depth, 1], s.decisions[depth, 2] = pair, cursor[TRAIL], gap
    s.decisions[depth, 3], s.decisions[depth, 4] = int(up <= down), 0
    cursor[DEPTH] = depth + 1
    take_side(s, depth)


def take_side(s: Search, depth: int) -> None:
    """The distance of a pair lies in a gap above the split, or in one that is not."""
    count, total = s.bodies.shape[1] - 1, s.pairs.shape[1] - 1
    pair, gap = s.decisions[depth, 0], s.decisions[depth, 2]
    s.cursor[LEVEL] += 1
    if s.decisions[depth, 3] == 1:
        assign(s, 2 * count + pair, gap + 1)
    else:
        assign(s, 2 * count + total + pair, gap)
    tighten(s, pair)


def turn_back(s: Search) -> bool:
    """Undoes decisions up to the last one whose other side is open, and takes that; False where none is."""
    cursor, decisions = s.cursor, s.decisions
    count = s.bodies.shape[1] - 1
    s.queue[count:] = 0
    cursor[WAITING] = 0
    depth = cursor[DEPTH]
    while depth > 0:
        depth -= 1
        for k in range(cursor[TRAIL] - 1, decisions[depth, 1] - 1, -1):
            s.state[s.trail[k, 0]] = s.trail[k, 1]
        cursor[TRAIL] = decisions[depth, 1]
        if decisions[depth, 4] == 0:
            decisions[depth, 3], decisions[depth, 4] = 1 - decisions[depth, 3], 1
            cursor[DEPTH], cursor[FAILED] = depth + 1, 0
            take_side(s, depth)
            return True
    cursor[DEPTH] = 0
    return False


def assign(s: Search, cell: int, value: int) -> None:
    """Changes a cell of the state, and keeps on the trail what stood there when this level began."""
    if s.stamp[cell] != s.cursor[LEVEL]:
        k = s.cursor[TRAIL]
        s.trail[k, 0], s.trail[k, 1] = cell, s.state[cell]
        s.cursor[TRAIL] = k + 1
        s.stamp[cell] = s.cursor[LEVEL]
    s.state[cell] = value


def wait(s: Search, body: int) -> None:
    """A body has moved: its pairs and cliques must be looked at."""
    count = s.bodies.shape[1] - 1
    if s.queue[count + body] != 0:
        return
    s.queue[count + body] = 1
    s.queue[(s.cursor[NEXT] + s.cursor[WAITING]) % count] = body
    s.cursor[WAITING] += 1
    for k in range(s.bodies[HOME, body], s.bodies[HOME, body + 1]):
        s.dirty[s.home[k]] = 1


def propagate(s: Search) -> None:
    """Looks at the pairs of all that moved, then at their cliques, until nothing moves or the node is dead."""
    cursor, count = s.cursor, s.bodies.shape[1] - 1
    steps = STEPS
    while cursor[FAILED] == 0 and cursor[WAITING] > 0 and steps > 0:
        body = s.queue[cursor[NEXT]]
        s.queue[count + body] = 0
        cursor[NEXT] = (cursor[NEXT] + 1) % count
        cursor[WAITING] -= 1
        for k in range(s.bodies[EDGE, body], s.bodies[EDGE, body + 1]):
            if cursor[FAILED] == 0:
                tighten(s, s.edges[k])
        steps -= 1
    clique = 0
    while cursor[FAILED] == 0 and clique < s.dirty.size:
        if s.dirty[clique] != 0:
            s.dirty[clique] = 0
            check_clique(s, clique)
        clique += 1


def tighten(s: Search, pair: int) -> None:
    """Which gaps two bodies still allow; which offsets these gaps allow."""
    gaps, state, count, total = s.gaps, s.state, s.bodies.shape[1] - 1, s.pairs.shape[1] - 1
    one, other = s.pairs[ONE, pair], s.pairs[OTHER, pair]
    least, most = state[other] - state[count + one], state[count + other] - state[one]
    first, last = state[2 * count + pair], state[2 * count + total + pair]
    while first <= last and gaps[HIGH, first] < least:
        first += 1
    while first <= last and gaps[LOW, last] > most:
        last -= 1
    if first > last:
        fail(s, one, other)
        return
    if first != state[2 * count + pair]:
        assign(s, 2 * count + pair, first)
    if last != state[2 * count + total + pair]:
        assign(s, 2 * count + total + pair, last)
    low, high = gaps[LOW, first], gaps[HIGH, last]
    move(s, other, state[one] + low, state[count + one] + high)
    move(s, one, state[other] - high, state[count + other] - low)
    if s.cursor[FAILED] != 0:
        fail(s, one, other)


def move(s: Search, body: int, lowest: int, highest: int) -> None:
    """A body lies between these offsets."""
    count, alignment = s.bodies.shape[1] - 1, s.bodies[ALIGNMENT, body]
    has_moved = False
    if lowest > s.state[body]:
        assign(s, body, -(-lowest // alignment) * alignment)
        has_moved = True
    if highest < s.state[count + body]:
        assign(s, count + body, highest // alignment * alignment)
        has_moved = True
    if s.state[body] > s.state[count + body]:
        s.cursor[FAILED] = 1
    if has_moved:
        wait(s, body)


def check_clique(s: Search, clique: int) -> None:
    """The node is dead if what must lie between two heights has more bytes than lie between them."""
    begin, end = s.clique[clique], s.clique[clique + 1]
    sort_slots(s, begin, end)
    for k in range(begin, end):
        low = s.span[0, s.order[k]]
        need = low
        for m in range(begin, end):
            slot = s.order[m]
            if s.span[0, slot] >= low:
                need += s.slots[BULK, slot]
                if need > s.span[1, slot]:
                    fail(s, s.slots[OWNER, slot], s.slots[OWNER, s.order[k]])
                    return


def sort_slots(s: Search, begin: int, end: int) -> None:
    """Where the slots of a clique may lie; by their highest ends, which is mostly the order that they were left in."""
    count = s.bodies.shape[1] - 1
    for k in range(begin, end):
        slot = s.order[k]
        body = s.slots[OWNER, slot]
        s.span[0, slot] = s.state[body] + s.slots[SHIFT, slot]
        top = s.state[count + body] + s.slots[SHIFT, slot] + s.slots[BULK, slot]
        s.span[1, slot] = top
        place = k
        while place > begin and s.span[1, s.order[place - 1]] > top:
            s.order[place] = s.order[place - 1]
            place -= 1
        s.order[place] = slot


def fail(s: Search, one: int, other: int) -> None:
    """The node is dead because of two bodies; later failures count more."""
    last = s.strain.size - 1
    s.cursor[FAILED] = 1
    s.strain[one] += s.strain[last]
    s.strain[other] += s.strain[last]
    s.strain[last] *= 1.02
    if s.strain[last] > 1e100:
        s.strain[:] *= 1e-100
