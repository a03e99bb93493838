"""Ejection search: units are put back one by one below a goal; what is in the way of one of them is taken out for it.

A unit is a chain of overwrites as a rectangle of bytes and ticks. The one whose turn it is goes to the lowest place
that is free; where there is none below the goal, to the place where those in the way cost least, which wait then. What
it costs to take a unit out grows each time that the unit finds no free place, so that hard ones stay (ejection pools
with counters: Nagata and Bräysy 2009, "A powerful route minimization heuristic", section 3).

Time is cut into slots. A unit meets units that live on at the beginning of its first slot, which are listed, and units
that begin from there on until it ends: units are numbered by their begin. A step takes time in proportion to these.
"""

from typing import NamedTuple

from allocator.kernels.climb import MODULUS, MULTIPLIER
from allocator.kernels.gaps import BELOW, NOWHERE, sort
from allocator.kernels.numbers import Numbers, kernel

WAITING, STUCK, LOOKED = range(3)
"""Places of the cursor: how many units wait; 1 where no place is left to one, for pinned units; units looked at."""
FIRST_WEIGHT, GROWTH, MOST_WEIGHT = 16, 4, 1 << 24
"""The weight of a unit that has always found a place, what it grows by, and what it never exceeds."""
MOST_PRICE = 1 << 14
"""The price of the unit that costs most to take out, but for its weight. So 2**24 units cost less than ENDLESS."""
PINNED = 0
"""Weight of a unit that is never taken out."""
ENDLESS = 1 << 62
_NOISE = 100
"""Thousandths by which a place may seem to cost more than it does."""


class EjectionSearch(NamedTuple):
    """The state of a search, by unit but for the last ones.

    Unit k meets those that live in its ticks [begin, end): among the units near[start[slot] : start[slot + 1]] of its
    first slot, and those numbered `since` to `until` (ends are out). `turn` is the place of a unit among those that
    wait, `unit_of` the unit of a turn; those that wait are a heap of turns. Scratch for what bars the way: `ceilings`,
    `lower`, `floors` and `upper`, twice as long as what a unit meets; `digits`. `chance` holds one number in
    [1, MODULUS).
    """

    begin: Numbers
    end: Numbers
    slot: Numbers
    since: Numbers
    until: Numbers
    start: Numbers
    near: Numbers
    size: Numbers
    alignment: Numbers
    price: Numbers
    turn: Numbers
    unit_of: Numbers
    offset: Numbers
    weight: Numbers
    heap: Numbers
    ceilings: Numbers
    lower: Numbers
    floors: Numbers
    upper: Numbers
    digits: Numbers
    chance: Numbers
    cursor: Numbers


@kernel
def put_back(s: EjectionSearch, goal: int, steps: int, looks: int) -> int:
    """Places units that wait until none does, one is stuck, or so many steps are done. Returns the number of steps.

    Ends, too, after the step in which it looked at so many units, which the cursor counts; 0 steps are none. Nothing
    that is placed ends above the goal, if nothing did before.
    """
    s.cursor[LOOKED] = 0
    for step in range(steps):
        if s.cursor[WAITING] == 0 or s.cursor[STUCK] or s.cursor[LOOKED] >= looks:
            return step
        unit = next_waiting(s)
        s.cursor[LOOKED] += s.start[s.slot[unit] + 1] - s.start[s.slot[unit]] + s.until[unit] - s.since[unit]
        count = list_ranges(s, unit)
        first = sort(s.lower, s.ceilings, s.digits, count)
        place = lowest_gap(s, unit, first, count)
        if place > goal - s.size[unit]:
            place = cheapest_place(s, unit, goal, first, count)
            if place == NOWHERE:
                s.cursor[STUCK] = 1
                wait(s, s.turn[unit])
                return step + 1
            make_room(s, unit, place, first, count)
            s.weight[unit] = min(s.weight[unit] + GROWTH, MOST_WEIGHT)
        s.offset[unit] = place
    return steps


@kernel
def take_out_above(s: EjectionSearch, goal: int) -> None:
    """Takes out all that ends above a goal; a search that was stuck goes on."""
    s.cursor[STUCK] = 0
    for unit in range(len(s.size)):
        if s.offset[unit] != NOWHERE and s.offset[unit] + s.size[unit] > goal and s.weight[unit] != PINNED:
            s.offset[unit] = NOWHERE
            wait(s, s.turn[unit])


def wait(s: EjectionSearch, turn: int) -> None:
    """Adds one to those that wait; the lowest turn comes next."""
    at, heap = s.cursor[WAITING], s.heap
    s.cursor[WAITING] = at + 1
    while at > 0 and heap[(at - 1) // 2] > turn:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = turn


def next_waiting(s: EjectionSearch) -> int:
    """Returns the unit whose turn it is, which waits no more."""
    heap, count = s.heap, s.cursor[WAITING] - 1
    turn, moved, at = heap[0], heap[count], 0
    s.cursor[WAITING] = count
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= moved:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved
    return s.unit_of[turn]


def list_ranges(s: EjectionSearch, unit: int) -> int:
    """Lists the units that bar the way of a unit in `lower`, with their ceilings. Returns their number.

    What is not in the way is written over: no branch.
    """
    count, begin, size = 0, s.begin[unit], s.size[unit]
    for k in range(s.start[s.slot[unit]], s.start[s.slot[unit] + 1]):
        other = s.near[k]
        s.ceilings[count], s.lower[count] = max(s.offset[other] - size, BELOW), other
        count += (s.offset[other] != NOWHERE) & (begin < s.end[other])
    for other in range(s.since[unit], s.until[unit]):
        s.ceilings[count], s.lower[count] = max(s.offset[other] - size, BELOW), other
        count += (s.offset[other] != NOWHERE) & (begin < s.end[other])
    return count


def aligned(offset: int, alignment: int) -> int:
    """Returns the lowest aligned offset that is not below this one."""
    return aligned_below(offset + alignment - 1, alignment)


def aligned_below(offset: int, alignment: int) -> int:
    """Returns the highest aligned offset that is not above this one. A division takes as long as ten other steps."""
    return offset & -alignment if alignment & (alignment - 1) == 0 else offset - offset % alignment


def lowest_gap(s: EjectionSearch, unit: int, first: int, count: int) -> int:
    """Returns the lowest offset that nothing bars; ranges are sorted by ceilings."""
    place = 0
    for k in range(first, first + count):
        if s.ceilings[k] >= place:
            return place
        other = s.lower[k]
        place = max(place, aligned(s.offset[other] + s.size[other], s.alignment[unit]))
    return place


def cheapest_place(s: EjectionSearch, unit: int, goal: int, first: int, count: int) -> int:
    """Returns the place below the goal where those in the way cost least, with a little noise, or NOWHERE.

    That is one at the bottom, at the goal, or beside something. All are visited from below, so that the cost follows
    from that of the place before. None where a pinned unit is in the way is taken.
    """
    top, alignment = goal - s.size[unit], s.alignment[unit]
    if top < 0:
        return NOWHERE
    ceilings, lower, floors, upper = s.ceilings, s.lower, s.floors, s.upper
    offset, size, weight, price = s.offset, s.size, s.weight, s.price
    top = aligned_below(top, alignment)
    for k in range(count):
        other = lower[first + k]
        floors[k], upper[k] = offset[other] + size[other], other
    second = sort(upper, floors, s.digits, count)
    entered, entered_end, left, left_end = first, first + count, second, second + count
    cost, pinned, chance = 0, 0, s.chance[0]
    best, least, place = NOWHERE, ENDLESS, 0
    while True:
        while entered < entered_end and ceilings[entered] < place:
            other = lower[entered]
            cost, pinned = cost + weight[other] * price[other], pinned + (weight[other] == PINNED)
            entered += 1
        while left < left_end and floors[left] <= place:
            other = upper[left]
            cost, pinned = cost - weight[other] * price[other], pinned - (weight[other] == PINNED)
            left += 1
        chance = chance * MULTIPLIER % MODULUS
        seeming = cost + (cost >> 10) * (chance % _NOISE)
        if pinned == 0 and seeming < least:
            best, least = place, seeming
        if place == top:
            s.chance[0] = chance
            return best
        following = aligned(floors[left], alignment) if left < left_end else top
        at = entered
        while at < entered_end and aligned_below(ceilings[at], alignment) <= place:
            at += 1
        if at < entered_end:
            following = min(following, aligned_below(ceilings[at], alignment))
        place = min(top, following)


def make_room(s: EjectionSearch, unit: int, place: int, first: int, count: int) -> None:
    """Takes out what is in the way of a unit there."""
    end = place + s.size[unit]
    for k in range(first, first + count):
        other = s.lower[k]
        if s.offset[other] < end and place < s.offset[other] + s.size[other]:
            s.offset[other] = NOWHERE
            wait(s, s.turn[other])
