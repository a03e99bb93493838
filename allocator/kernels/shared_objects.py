"""Units are given to shared objects one by one (Pisarchyk and Lee 2020; TensorFlow Lite, delegates/gpu).

`units`, `objects` and `lives` hold records, which are named by the index of their first number. Who is in an object is
kept in one of two ways. Where lifetimes decide who may share, object o has COUNT records in `lives` from FIRST on, one
a unit, by time, and room for SPACE. Where conflicts decide, `lives` is empty; those of unit k are
near[start[k] : start[k + 1]], and objects that hold one of them have its MARK while it looks for an object.
"""

from allocator.kernels.numbers import Numbers, kernel

BEGIN, END, SIZE, TAKEN, BEST, LEAF = range(6)
"""Fields of a unit. `lives` has the first two. TAKEN is the object that it is in."""
UNIT, LIFE = 6, 2
"""Numbers in a record."""
ROOM, MARK, FIRST, COUNT, SPACE = range(5)
"""Fields of an object. ROOM is its bytes."""
OBJECT = 5
USED, TOP = range(2)
"""Fields of the first record of `objects`, which is no object: where `objects` and `lives` were never used."""
LOW, HIGH, CAME, LEFT = range(4)
"""Places of the cursor of `share_by_gap`."""
CURSOR = 4
NONE, STALE = 0, -1
"""Marks in place of an object: there is none; there was one, but it is in use now."""
BUSY = -1
"""The mark in place of a gap: the object is in use in that time."""
FAR = 2**62
"""A number of bytes that no object has, and the gap in an object that does not exist yet."""
GONE = FAR + 1
"""The mark in place of the gap of a unit that does not wait."""
NEVER, AT_NEED, WHERE_NEARER = range(3)
"""When an object grows: never; if no larger one is free; if no larger one is as near in size."""


@kernel
def share(
    units: Numbers, objects: Numbers, lives: Numbers, start: Numbers, near: Numbers, order: Numbers,
    slack: int, growth: int, cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Gives each unit, in this order, to an object which is at most `slack` bytes larger, or else to a new one.

    `cursor` holds how many units have one. Ends when all have, or when it looked at so many objects, neighbours and
    units in an object; returns how many they are.
    """
    looked = 0
    while cursor[0] < len(order) and looked < looks:
        at = order[cursor[0]]
        unit = UNIT * at
        if len(start):
            for k in range(start[at], start[at + 1]):
                holder = units[UNIT * near[k] + TAKEN]
                if holder != NONE:
                    objects[holder + MARK] = unit + 1
            looked += start[at + 1] - start[at]
        looked += objects[USED] // OBJECT
        holder = give(units, objects, lives, unit, choose(units, objects, lives, unit, slack, growth))
        looked += objects[holder + COUNT]
        cursor[0] += 1
    return looked


def choose(units: Numbers, objects: Numbers, lives: Numbers, unit: int, slack: int, growth: int) -> int:
    """Returns the smallest free object that is large enough, or the largest that has to grow; NONE for none.

    Of equal objects it is the oldest, as in TensorFlow Lite.
    """
    size, above, below = units[unit + SIZE], NONE, NONE
    least, most = size + slack, -1
    for candidate in range(OBJECT, objects[USED], OBJECT):
        room = objects[candidate + ROOM]
        if room >= size:
            if room <= least and is_free(units, objects, lives, unit, candidate):
                above, least = candidate, room - 1
                if room == size:
                    break
        elif growth != NEVER and room > most and is_free(units, objects, lives, unit, candidate):
            below, most = candidate, room
    is_nearer = above == NONE or (growth == WHERE_NEARER and size - most < least + 1 - size)
    return below if is_nearer and below != NONE else above


def is_free(units: Numbers, objects: Numbers, lives: Numbers, unit: int, candidate: int) -> bool:
    """Returns whether no unit in the object conflicts with this one."""
    if not len(lives):
        return objects[candidate + MARK] != unit + 1
    return idle(objects, lives, candidate, units[unit + BEGIN], units[unit + END]) != BUSY


def idle(objects: Numbers, lives: Numbers, holder: int, begin: int, end: int) -> int:
    """Returns the ticks for which the object is idle before or behind [begin, end), the fewer; or BUSY."""
    first = objects[holder + FIRST]
    last = first + LIFE * objects[holder + COUNT]
    at, gap = place(lives, first, last, end), FAR
    if at > first:
        gap = begin - lives[at - LIFE + END]
        if gap < 0:
            return BUSY
    if at < last:
        gap = min(gap, lives[at + BEGIN] - end)
    return gap


def place(lives: Numbers, first: int, last: int, tick: int) -> int:
    """Returns the first record, of those from `first` to `last`, that begins at this tick or later."""
    while first < last:
        middle = first + (last - first) // (2 * LIFE) * LIFE
        if lives[middle + BEGIN] < tick:
            first = middle + LIFE
        else:
            last = middle
    return first


def give(units: Numbers, objects: Numbers, lives: Numbers, unit: int, holder: int) -> int:
    """Puts a unit into an object, or for NONE into a new one. Returns the object."""
    if holder == NONE:
        holder = objects[USED]
        objects[USED] += OBJECT
    units[unit + TAKEN] = holder
    objects[holder + ROOM] = max(objects[holder + ROOM], units[unit + SIZE])
    if len(lives):
        if objects[holder + COUNT] == objects[holder + SPACE]:
            move(objects, lives, holder)
        first = objects[holder + FIRST]
        last = first + LIFE * objects[holder + COUNT]
        at = place(lives, first, last, units[unit + END])
        for k in range(last - 1, at - 1, -1):
            lives[k + LIFE] = lives[k]
        lives[at + BEGIN], lives[at + END] = units[unit + BEGIN], units[unit + END]
        objects[holder + COUNT] += 1
    return holder


def move(objects: Numbers, lives: Numbers, holder: int) -> None:
    """Moves an object to twice the space. With n units there are never more than 4 n records in use or given up."""
    old, new = objects[holder + FIRST], objects[TOP]
    for k in range(LIFE * objects[holder + COUNT]):
        lives[new + k] = lives[old + k]
    objects[holder + FIRST], objects[holder + SPACE] = new, max(2 * objects[holder + SPACE], 1)
    objects[TOP] += LIFE * objects[holder + SPACE]


@kernel
def share_by_gap(
    units: Numbers, objects: Numbers, lives: Numbers, order: Numbers, stage: Numbers, waiting: Numbers, gap: Numbers,
    cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Gives units to objects stage by stage, the unit with the smallest gap first; lifetimes decide.

    `order` stands by stage, and decides between equal gaps. `waiting` lists the units of a stage that have no object
    yet. BEST is the oldest of the objects where a unit has its smallest gap, NONE for a new one, or STALE: then the gap
    is at least what it was. Gaps stand in a tournament: node k of it is the smaller of the nodes 2 k and 2 k + 1; LEAF
    is where that of a unit stands. O(n * (objects + units of a stage)).

    `cursor` has the units order[LOW:HIGH] of the stage, how many of them came, and how many of those wait. Ends as
    `share` does.
    """
    looked = 0
    while looked < looks and (cursor[LEFT] or cursor[HIGH] < len(order)):
        if cursor[LEFT] == 0:
            looked += open_stage(order, stage, gap, cursor)
        if cursor[CAME] < cursor[HIGH] - cursor[LOW]:
            enter_next(units, objects, lives, order, waiting, gap, cursor)
            looked += objects[USED] // OBJECT
        else:
            looked += give_nearest(units, objects, lives, order, waiting, gap, cursor)
    return looked


def leaves_of(cursor: Numbers) -> int:
    """Returns the number of leaves of the tournament of a stage."""
    leaves = 1
    while leaves < cursor[HIGH] - cursor[LOW]:
        leaves *= 2
    return leaves


def open_stage(order: Numbers, stage: Numbers, gap: Numbers, cursor: Numbers) -> int:
    """Goes on to the next stage, of which no unit has come. Returns the nodes of its tournament."""
    low = cursor[HIGH]
    high = low + 1
    while high < len(order) and stage[order[high]] == stage[order[low]]:
        high += 1
    cursor[LOW], cursor[HIGH], cursor[CAME] = low, high, 0
    nodes = 2 * leaves_of(cursor)
    for node in range(nodes):
        gap[node] = GONE
    return nodes


def enter_next(
    units: Numbers, objects: Numbers, lives: Numbers, order: Numbers, waiting: Numbers, gap: Numbers, cursor: Numbers
) -> None:
    """Lets the next unit of a stage come, and finds its smallest gap."""
    at, leaves = cursor[CAME], leaves_of(cursor)
    waiting[at] = UNIT * order[cursor[LOW] + at]
    units[waiting[at] + LEAF], gap[leaves + at] = leaves + at, 0
    look(units, objects, lives, gap, waiting[at])
    cursor[CAME] = cursor[LEFT] = at + 1


def give_nearest(
    units: Numbers, objects: Numbers, lives: Numbers, order: Numbers, waiting: Numbers, gap: Numbers, cursor: Numbers
) -> int:
    """Gives the unit with the smallest gap to an object. Returns how many objects and units it looked at."""
    low, leaves, looked = cursor[LOW], leaves_of(cursor), cursor[LEFT]
    unit = UNIT * order[low + nearest(gap, leaves)]
    while units[unit + BEST] == STALE:
        look(units, objects, lives, gap, unit)
        looked += objects[USED] // OBJECT
        unit = UNIT * order[low + nearest(gap, leaves)]
    set_gap(gap, units[unit + LEAF], GONE)
    holder = give(units, objects, lives, unit, units[unit + BEST])
    follow(units, objects, lives, waiting, cursor[LEFT], gap, unit, holder)
    cursor[LEFT] -= 1
    return looked


def look(units: Numbers, objects: Numbers, lives: Numbers, gap: Numbers, unit: int) -> None:
    """Finds the smallest gap of a unit, over all objects; it is known to be no smaller than it was."""
    floor, least, best = gap[units[unit + LEAF]], FAR, NONE
    for candidate in range(OBJECT, objects[USED], OBJECT):
        idle_ticks = idle(objects, lives, candidate, units[unit + BEGIN], units[unit + END])
        if idle_ticks != BUSY and idle_ticks < least:
            least, best = idle_ticks, candidate
            if idle_ticks == floor:
                break
    units[unit + BEST] = best
    set_gap(gap, units[unit + LEAF], least)


def set_gap(gap: Numbers, leaf: int, value: int) -> None:
    """Enters a gap into the tournament."""
    gap[leaf] = value
    while leaf > 1:
        leaf //= 2
        least = min(gap[2 * leaf], gap[2 * leaf + 1])
        if gap[leaf] == least:
            break
        gap[leaf] = least


def nearest(gap: Numbers, leaves: int) -> int:
    """Returns the number of the first leaf with the smallest gap."""
    node = 1
    while node < leaves:
        node *= 2
        if gap[node] != gap[node // 2]:
            node += 1
    return node - leaves


def follow(
    units: Numbers, objects: Numbers, lives: Numbers, waiting: Numbers, count: int, gap: Numbers, gone: int, holder: int
) -> None:
    """Removes a unit from the waiting ones, and updates the gaps of the others to the object that it is in."""
    to = 0
    for at in range(count):
        unit = waiting[at]
        if unit == gone:
            continue
        waiting[to] = unit
        to += 1
        distance = max(units[unit + BEGIN] - units[gone + END], units[gone + BEGIN] - units[unit + END])
        best, least = units[unit + BEST], gap[units[unit + LEAF]]
        if distance < 0:
            units[unit + BEST] = STALE if best == holder else best
        elif (distance < least or (distance == least and holder < best)) and (
            holder == best or is_free(units, objects, lives, unit, holder)
        ):
            units[unit + BEST] = holder
            set_gap(gap, units[unit + LEAF], distance)


@kernel
def lay(order: Numbers, taken: Numbers, size: Numbers, alignment: Numbers, offset: Numbers) -> None:
    """Computes the offsets of units of objects end to end: each as low in its object as it may be."""
    base, top = 0, 0
    for at in range(len(order)):
        unit = order[at]
        if at and taken[unit] != taken[order[at - 1]]:
            base = top
        offset[unit] = -(-base // alignment[unit]) * alignment[unit]
        top = max(top, offset[unit] + size[unit])
