"""Depth-first search for a plan of rectangles within a capacity, from the floor upwards.

Bodies are rectangles: a size in bytes, and neighbours that they may not overlap. Every decision takes one body: it
lies as low as what is placed lets it (left branch), or it waits for a neighbour that is not placed yet to come below it
(right branch). Some best plan is found this way, since in a plan in which nothing can move down each body rests on the
floor, on a pinned body or on a neighbour (canonical solutions: Moffitt 2023, MiniMalloc; the branching is the "setting
times" of scheduling: Le Pape, Couronne, Vergamini and Gosselin 1994).

A body is taken only if no neighbour that is not placed fits wholly below it (MiniMalloc's dominance, but among
neighbours alone, so that what happens far away in time does not interfere). Whatever is placed later lies above. A body
that waits lies no lower than the lowest top that a neighbour can still have. The bodies of a clique need their sizes
one on another above the lowest place that any of them can have: more than the capacity, and the branch is dead.
"""

from typing import NamedTuple

from allocator.kernels.numbers import fill, kernel
from allocator.machine_code.arrays import Doubles, Longs, Table

FOUND, EXHAUSTED, OUT_OF_NODES, OUT_OF_ROOM = range(4)
BY_RANK, BY_SLACK, BY_STRAIN, BY_BOTH = range(4)
"""The rule for bodies that can lie equally low: rank alone; the least spare bytes in a clique; the clique that failed
often and lately; spare bytes over failures. Ties: rank."""
SIZE, BULK, ALIGNMENT, PINNED, LATEST, RANK, NEAR, HOME = range(8)
"""Rows of `bodies`. Bulk: the size rounded up to what all alignments have in common, so the bytes lost to others.
Latest: the highest offset within the capacity. Near, home: where the body's entries in those lists begin."""
BASE, EARLIEST, WAITED, SUPPORT = range(4)
"""Rows of `state`: the lowest place above what is placed; a lower bound of the offset, FAR once the body is placed; the
base at which the body was made to wait, or -1; a neighbour on whose top a waiting body could lie earliest, when it was
last looked for."""
ROOM, REST, FLOOR, MEMBER, LOWEST = range(5)
"""Rows of `cliques`: the most that the bulk of its bodies may reach up to; bulk that is not placed; the lowest place
that any of those can have; where its entries in `member` begin; a body that had that place when last looked for."""
TRAIL, DEPTH, COUNT, NODES, FAILED, PINS = range(6)
"""Cells of `cursor`: lengths of the trail and of the decisions; bodies placed; nodes; whether the node is dead; pinned
bodies."""
FAR = 1 << 62
ROUNDS = 8


class SkylineSearch(NamedTuple):
    """The arrays that a search reads and changes; see the rows above. One column a body, or a clique, and one behind.

    One column a body, or a clique, and one behind.
    """

    bodies: Table
    near: Longs
    home: Longs
    """Cliques of each body."""
    cliques: Table
    member: Longs
    """Bodies of each clique."""
    strain: Doubles
    """The failures of each clique, of which later ones count more; behind them the weight of a failure now."""
    urgency: Doubles
    """The urgency of each clique when it was last looked at."""
    state: Table
    trail: Table
    """(row of the state, or -1 for the floor of a clique; place; old value) of what changed."""
    decisions: Table
    """(body, length of the trail before, whether the right branch was taken)."""
    cursor: Longs


@kernel
def explore(s: SkylineSearch, manner: int, nodes: int) -> int:
    """Continues a search for at most `nodes` decisions. Once FOUND, row BASE of the state holds the offsets."""
    cursor, count = s.cursor, s.bodies.shape[1] - 1
    limit = cursor[NODES] + nodes
    reserve = (4 + 2 * ROUNDS) * count + 2 * s.cliques.shape[1]
    while True:
        if cursor[FAILED] == 0 and cursor[COUNT] == count:
            return FOUND
        if cursor[NODES] >= limit:
            return OUT_OF_NODES
        if cursor[TRAIL] + reserve > s.trail.shape[0] or cursor[DEPTH] + 1 >= s.decisions.shape[0]:
            return OUT_OF_ROOM
        body = -1
        if cursor[FAILED] == 0:
            body = choose(s, manner)
        if body >= 0:
            descend(s, body)
        elif not turn_back(s):
            return EXHAUSTED
        cursor[NODES] += 1


@kernel
def prepare(s: SkylineSearch) -> None:
    """Lets the search begin: nothing placed. FAILED is set where that is hopeless."""
    bodies, state, cliques, cursor = s.bodies, s.state, s.cliques, s.cursor
    last, last_clique = bodies.shape[1] - 1, cliques.shape[1] - 1
    fill(cursor, 0)
    for body in range(last):
        cursor[PINS] += bodies[PINNED, body] >= 0
    for body in range(last):
        at = bodies[PINNED, body]
        if at < 0:
            at = lifted(bodies, s.near, cursor, body, 0)
        state[BASE, body], state[EARLIEST, body], state[WAITED, body], state[SUPPORT, body] = at, at, -1, -1
        if at > bodies[LATEST, body]:
            cursor[FAILED] = 1
    for clique in range(last_clique):
        cliques[REST, clique], cliques[FLOOR, clique], cliques[LOWEST, clique] = 0, -1, -1
        for k in range(cliques[MEMBER, clique], cliques[MEMBER, clique + 1]):
            cliques[REST, clique] += bodies[BULK, s.member[k]]
    settle(s)


def choose(s: SkylineSearch, manner: int) -> int:
    """Returns the body to decide on next, one of those that can lie lowest; -1 where none is left: the node is dead."""
    bodies, near, state, home, urgency = s.bodies, s.near, s.state, s.home, s.urgency
    if manner != BY_RANK:
        weigh_cliques(s.cliques, s.strain, urgency, manner)
    best, lowest, first = -1, FAR, 0.0
    for body in range(bodies.shape[1] - 1):
        at = state[BASE, body]
        if at > lowest or state[EARLIEST, body] != at or state[WAITED, body] >= at:
            continue
        own = 0.0 if manner == BY_RANK else most_urgent(bodies, home, urgency, body)
        if at == lowest and (own > first or (own == first and bodies[RANK, body] >= bodies[RANK, best])):
            continue
        if lowest_top(bodies, near, state, body) > at:
            best, lowest, first = body, at, own
    return best


def weigh_cliques(cliques: Table, strain: Doubles, urgency: Doubles, manner: int) -> None:
    """Computes how urgent each clique is; smaller is more urgent."""
    worth = strain[strain.size - 1]
    for clique in range(urgency.size):
        left = float(cliques[ROOM, clique] - cliques[FLOOR, clique] - cliques[REST, clique])
        if manner == BY_STRAIN:
            left = -strain[clique]
        elif manner == BY_BOTH:
            left = (left + 1.0) / (strain[clique] / worth + 0.01)
        urgency[clique] = left


def most_urgent(bodies: Table, home: Longs, urgency: Doubles, body: int) -> float:
    """Returns the urgency of the most urgent clique of a body."""
    first = 1e300
    for k in range(bodies[HOME, body], bodies[HOME, body + 1]):
        first = min(first, urgency[home[k]])
    return first


def lowest_top(bodies: Table, near: Longs, state: Table, body: int) -> int:
    """Returns the lowest top that a neighbour which is not placed can have."""
    lowest = FAR
    for k in range(bodies[NEAR, body], bodies[NEAR, body + 1]):
        lowest = min(lowest, state[EARLIEST, near[k]] + bodies[SIZE, near[k]])
    return lowest


def who_tops(bodies: Table, near: Longs, state: Table, body: int, top: int) -> int:
    """Returns the neighbour whose top this can be. (One loop for both would not be vectorised.)"""
    for k in range(bodies[NEAR, body], bodies[NEAR, body + 1]):
        if state[EARLIEST, near[k]] + bodies[SIZE, near[k]] == top:
            return int(near[k])
    return -1


def descend(s: SkylineSearch, body: int) -> None:
    """Takes the left branch: the body lies at its base, its neighbours above it. A pinned body has no right branch."""
    bodies, cursor, cliques, depth = s.bodies, s.cursor, s.cliques, s.cursor[DEPTH]
    s.decisions[depth, 0], s.decisions[depth, 1] = body, cursor[TRAIL]
    s.decisions[depth, 2] = bodies[PINNED, body] >= 0
    cursor[DEPTH] = depth + 1
    assign(s.state, s.trail, cursor, EARLIEST, body, FAR)
    cursor[COUNT] += 1
    for k in range(bodies[HOME, body], bodies[HOME, body + 1]):
        cliques[REST, s.home[k]] -= bodies[BULK, body]
    raise_neighbours(bodies, s.near, s.state, s.trail, cursor, body)
    top = s.state[BASE, body] + bodies[SIZE, body]
    for k in range(bodies[HOME, body], bodies[HOME, body + 1]):
        if cursor[FAILED] == 0:
            check_clique(cliques, s.member, s.strain, s.state, s.trail, cursor, s.home[k], top)
    settle(s)


def raise_neighbours(bodies: Table, near: Longs, state: Table, trail: Table, cursor: Longs, below: int) -> None:
    """Raises what is not placed above its neighbour `below`, which has just been placed."""
    top = state[BASE, below] + bodies[SIZE, below]
    for k in range(bodies[NEAR, below], bodies[NEAR, below + 1]):
        body = near[k]
        if state[BASE, body] >= top or state[EARLIEST, body] == FAR or bodies[PINNED, body] >= 0:
            continue
        at = lifted(bodies, near, cursor, body, top)
        assign(state, trail, cursor, BASE, body, at)
        if state[EARLIEST, body] < at:
            raise_to(bodies, state, trail, cursor, body, at)


def turn_back(s: SkylineSearch) -> bool:
    """Undoes decisions up to the last one whose right branch is open, and takes that; False where none is."""
    cursor, decisions, state = s.cursor, s.decisions, s.state
    depth = cursor[DEPTH]
    while depth > 0:
        depth -= 1
        undo(s, decisions[depth, 1])
        if decisions[depth, 2] == 0:
            body = decisions[depth, 0]
            decisions[depth, 2] = 1
            cursor[DEPTH] = depth + 1
            cursor[FAILED] = 0
            assign(state, s.trail, cursor, WAITED, body, state[BASE, body])
            settle(s)
            return True
    cursor[DEPTH] = 0
    cursor[FAILED] = 1
    return False


def undo(s: SkylineSearch, length: int) -> None:
    """Undoes all assignments since the trail had this length."""
    bodies, cliques, state, trail, home = s.bodies, s.cliques, s.state, s.trail, s.home
    for k in range(s.cursor[TRAIL] - 1, length - 1, -1):
        row, place = trail[k, 0], trail[k, 1]
        if row < 0:
            cliques[FLOOR, place] = trail[k, 2]
            continue
        if row == EARLIEST and state[EARLIEST, place] == FAR:
            s.cursor[COUNT] -= 1
            for h in range(bodies[HOME, place], bodies[HOME, place + 1]):
                cliques[REST, home[h]] += bodies[BULK, place]
        state[row, place] = trail[k, 2]
    s.cursor[TRAIL] = length


def assign(state: Table, trail: Table, cursor: Longs, row: int, place: int, value: int) -> None:
    """Assigns a cell of the state, and keeps the old value on the trail."""
    k = cursor[TRAIL]
    trail[k, 0], trail[k, 1], trail[k, 2] = row, place, state[row, place]
    cursor[TRAIL] = k + 1
    state[row, place] = value


def raise_to(bodies: Table, state: Table, trail: Table, cursor: Longs, body: int, at: int) -> None:
    """Raises the earliest place of a body."""
    assign(state, trail, cursor, EARLIEST, body, at)
    if at > bodies[LATEST, body]:
        cursor[FAILED] = 1


def lifted(bodies: Table, near: Longs, cursor: Longs, body: int, at: int) -> int:
    """Returns the lowest aligned offset from `at` on at which the body meets no pinned neighbour."""
    alignment = bodies[ALIGNMENT, body]
    offset = -(-at // alignment) * alignment if alignment > 1 else at
    while cursor[PINS] > 0:
        at = offset
        for k in range(bodies[NEAR, body], bodies[NEAR, body + 1]):
            pin, size = bodies[PINNED, near[k]], bodies[SIZE, near[k]]
            if pin >= 0 and pin < at + bodies[SIZE, body] and at < pin + size:
                at = pin + size
        if at == offset:
            break
        offset = -(-at // alignment) * alignment
    return offset


def settle(s: SkylineSearch) -> None:
    """Propagates what rose to the bodies that wait, then checks all cliques.

    Bodies that wait for each other could raise each other for long; the rounds are limited, which is sound.
    """
    cursor = s.cursor
    rounds = ROUNDS
    while rounds > 0 and cursor[FAILED] == 0 and raise_waiting(s.bodies, s.near, s.state, s.trail, s.decisions, cursor):
        rounds -= 1
    if cursor[FAILED] == 0:
        check_cliques(s)


def raise_waiting(bodies: Table, near: Longs, state: Table, trail: Table, decisions: Table, cursor: Longs) -> bool:
    """Raises bodies that wait, which will rest on a neighbour that is not placed. Returns whether any rose."""
    any_rose = False
    for depth in range(cursor[DEPTH]):
        body = decisions[depth, 0]
        at = state[EARLIEST, body]
        if decisions[depth, 2] == 0 or at == FAR or state[WAITED, body] < state[BASE, body]:
            continue
        support = state[SUPPORT, body]
        if support >= 0 and state[EARLIEST, support] + bodies[SIZE, support] <= at:
            continue
        top = lowest_top(bodies, near, state, body)
        if top > bodies[LATEST, body]:
            cursor[FAILED] = 1
            return False
        state[SUPPORT, body] = who_tops(bodies, near, state, body, top)
        if top > at:
            raise_to(bodies, state, trail, cursor, body, lifted(bodies, near, cursor, body, top))
            any_rose = True
    return any_rose


def check_cliques(s: SkylineSearch) -> None:
    """Raises the floors of cliques; the node is dead where what is not placed does not fit above the floor of one."""
    cliques, state, cursor = s.cliques, s.state, s.cursor
    for clique in range(cliques.shape[1] - 1):
        before, low = cliques[FLOOR, clique], cliques[LOWEST, clique]
        if low < 0 or state[EARLIEST, low] > before:
            check_clique(cliques, s.member, s.strain, state, s.trail, cursor, clique, before)
            if cursor[FAILED]:
                return


def check_clique(
    cliques: Table,
    member: Longs,
    strain: Doubles,
    state: Table,
    trail: Table,
    cursor: Longs,
    clique: int,
    least: int,
) -> None:
    """Checks one clique, whose floor is at least `least`."""
    floor, low = FAR, -1
    for k in range(cliques[MEMBER, clique], cliques[MEMBER, clique + 1]):
        at = state[EARLIEST, member[k]]
        if at < floor:
            floor, low = at, member[k]
            if floor <= least:
                break
    if floor == FAR:
        return
    cliques[LOWEST, clique] = low
    if floor + cliques[REST, clique] > cliques[ROOM, clique]:
        cursor[FAILED] = 1
        fail(strain, clique)
    elif floor != cliques[FLOOR, clique]:
        k = cursor[TRAIL]
        trail[k, 0], trail[k, 1], trail[k, 2] = -1, clique, cliques[FLOOR, clique]
        cursor[TRAIL] = k + 1
        cliques[FLOOR, clique] = floor


def fail(strain: Doubles, clique: int) -> None:
    """Counts a failure of a clique; later failures count more."""
    last = strain.size - 1
    strain[clique] += strain[last]
    strain[last] *= 1.02
    if strain[last] > 1e100:
        for k in range(strain.size):
            strain[k] *= 1e-100
