"""Local search over assignments: a unit moves to a faster memory, and what is in its way moves on.

The unit may be one of those that lie nowhere, which cost PENALTY each: so first everything fits. A step that makes the
assignment worse than the best by more than an allowance is undone (record-to-record travel: Dueck 1993, "New
optimization heuristics"). Units that must leave for another are chosen as in ejection chains (Glover 1996): those that
lose least for each byte that is missing.
"""

from typing import NamedTuple

from allocator.kernels.assignment import Assignment, first_with_room, has_room, put, take_out
from allocator.kernels.climb import MODULUS, MULTIPLIER
from allocator.kernels.numbers import Numbers, kernel

PENALTY = 1 << 45
"""The cost of a unit that lies nowhere: more than all units cost together, which is MOST_COST."""
MOST_COST = 1 << 44
CHANGED, TOTAL, BEST, LOOKS = range(4)
"""Places of the cursor: how many units a step has moved, the cost of the assignment, and that of the best; the units
and ticks that were looked at."""
_NO_UNIT, _UNKNOWN = -1, -1
_ENDLESS = 1 << 62
_SHARES = 1023
_LEAST_NOISE = 64


class MemorySearch(NamedTuple):
    """The state of a search beside the assignment.

    `cost` has M + 1 numbers for each unit, as `rank` has. A unit has bytes in the ticks [since, until). `best`: the
    memory of each unit in the best assignment. Scratch by unit: `changed`, those that a step has moved, and `before`,
    where each was, or -1; `others`, those that may have to leave for another, and the `loss` of each of these where it
    is known. `chance` holds one number in [1, MODULUS).
    """

    cost: Numbers
    since: Numbers
    until: Numbers
    best: Numbers
    changed: Numbers
    before: Numbers
    others: Numbers
    loss: Numbers
    chance: Numbers
    cursor: Numbers


@kernel
def search(s: Assignment, t: MemorySearch, steps: int, allowance: int, looks: int) -> int:
    """Makes so many steps, or fewer where each unit lies where it costs least. Returns the number of steps.

    No step begins where the cursor has so many looks, or more.
    """
    for step in range(steps):
        unit = next_unit(s, t)
        if unit == _NO_UNIT or t.cursor[LOOKS] >= looks:
            return step
        t.cursor[CHANGED] = 0
        total = t.cursor[TOTAL]
        memory = faster(s, t, unit)
        move(s, t, unit, memory)
        make_room(s, t, unit, memory)
        for k in range(1, t.cursor[CHANGED]):
            move(s, t, t.changed[k], first_with_room(s, t.changed[k]))
        lift(s, t)
        if t.cursor[TOTAL] > t.cursor[BEST] + allowance:
            for k in range(t.cursor[CHANGED]):
                take_out(s, t.changed[k])
                put(s, t.changed[k], t.before[t.changed[k]])
            t.cursor[TOTAL] = total
        for k in range(t.cursor[CHANGED]):
            t.before[t.changed[k]] = _NO_UNIT
        if t.cursor[TOTAL] < t.cursor[BEST]:
            t.cursor[BEST] = t.cursor[TOTAL]
            for other in range(len(t.best)):
                t.best[other] = s.memory[other]
    return steps


def draw(t: MemorySearch, count: int) -> int:
    """Returns a random number in [0, count)."""
    t.chance[0] = t.chance[0] * MULTIPLIER % MODULUS
    return t.chance[0] % count


def next_unit(s: Assignment, t: MemorySearch) -> int:
    """Returns a random unit that would cost less elsewhere, -1 where there is none."""
    count, width = len(s.memory), len(s.capacity) + 1
    first = draw(t, count)
    for k in range(count):
        unit = (first + k) % count
        if s.memory[unit] != s.rank[unit * width]:
            return unit
    return _NO_UNIT


def faster(s: Assignment, t: MemorySearch, unit: int) -> int:
    """Returns a random memory that stands before the one of a unit in its list."""
    at = unit * (len(s.capacity) + 1)
    place = 0
    while s.rank[at + place] != s.memory[unit]:
        place += 1
    return s.rank[at + draw(t, place)]


def move(s: Assignment, t: MemorySearch, unit: int, memory: int) -> None:
    """Moves a unit, whether there is room or not."""
    width = len(s.capacity) + 1
    if t.before[unit] == _NO_UNIT:
        t.before[unit] = s.memory[unit]
        t.changed[t.cursor[CHANGED]] = unit
        t.cursor[CHANGED] += 1
    t.cursor[TOTAL] += t.cost[unit * width + memory] - t.cost[unit * width + s.memory[unit]]
    take_out(s, unit)
    put(s, unit, memory)


def make_room(s: Assignment, t: MemorySearch, unit: int, memory: int) -> None:
    """Takes units out of a memory until nothing is too much in the life of a unit that stays."""
    none, ticks = len(s.capacity), len(s.load) // len(s.capacity)
    listed = 0
    while True:
        t.cursor[LOOKS] += listed + t.until[unit] - t.since[unit]
        tick, excess = 0, 0
        for at in range(t.since[unit], t.until[unit]):
            if s.load[memory * ticks + at] - s.capacity[memory] > excess:
                tick, excess = at, s.load[memory * ticks + at] - s.capacity[memory]
        if excess == 0:
            return
        if listed == 0:
            listed = list_others(s, t, unit, memory)
        leaving = cheapest(s, t, listed, memory, tick, excess)
        if leaving == _NO_UNIT:
            return
        move(s, t, leaving, none)


def list_others(s: Assignment, t: MemorySearch, unit: int, memory: int) -> int:
    """Lists the other units of a memory that live when a unit does. Returns how many there are."""
    listed = 0
    for other in range(len(s.memory)):
        lives = t.since[other] < t.until[unit] and t.since[unit] < t.until[other]
        if s.memory[other] == memory and other != unit and lives:
            t.others[listed], t.loss[listed] = other, _UNKNOWN
            listed += 1
    t.cursor[LOOKS] += len(s.memory)
    return listed


def cheapest(s: Assignment, t: MemorySearch, listed: int, memory: int, tick: int, excess: int) -> int:
    """Returns a listed unit of a memory, with bytes in a tick, that loses least for each byte that is too much.

    With a little noise. -1 where there is none. What a unit loses stays the same as long as others only leave the
    memory, which is too full for it.
    """
    width, leaving, least = len(s.capacity) + 1, _NO_UNIT, _ENDLESS
    for k in range(listed):
        other = t.others[k]
        if s.memory[other] != memory or tick < t.since[other] or t.until[other] <= tick:
            continue
        nbytes = bytes_in(s, other, tick)
        if nbytes == 0:
            continue
        if t.loss[k] == _UNKNOWN:
            to = first_with_room(s, other)
            t.loss[k] = max(t.cost[other * width + to] - t.cost[other * width + memory], 1)
        share = 1 + min(nbytes, excess) * _SHARES // excess
        seeming = t.loss[k] * (_LEAST_NOISE + draw(t, _LEAST_NOISE)) // share
        if seeming < least:
            leaving, least = other, seeming
    return leaving


def bytes_in(s: Assignment, unit: int, tick: int) -> int:
    """Returns the bytes of a unit in a tick."""
    nbytes = 0
    for part in range(s.start[unit], s.start[unit + 1]):
        if s.first[part] <= tick < s.last[part]:
            nbytes += s.size[part]
    return nbytes


def lift(s: Assignment, t: MemorySearch) -> None:
    """Moves units that live when something has changed to where they cost less, as far as there is room."""
    count, width = len(s.memory), len(s.capacity) + 1
    since, until = t.since[t.changed[0]], t.until[t.changed[0]]
    for k in range(1, t.cursor[CHANGED]):
        since, until = min(since, t.since[t.changed[k]]), max(until, t.until[t.changed[k]])
    t.cursor[LOOKS] += count
    first = draw(t, count)
    for k in range(count):
        unit = (first + k) % count
        if t.until[unit] <= since or until <= t.since[unit]:
            continue
        at = unit * width
        while s.rank[at] != s.memory[unit]:
            if has_room(s, unit, s.rank[at]):
                move(s, t, unit, s.rank[at])
                break
            at += 1
