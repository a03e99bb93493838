"""The assignment of takers to givers of which the savings are largest, by shortest augmenting paths (Crouse 2016, "On
implementing 2D rectangular assignment algorithms"; Jonker and Volgenant 1987).

Givers and takers are the same units. One that has ended hands its bytes on to one that begins: that saves the bytes of
the smaller. All other pairs save nothing. No table of savings is kept, so memory grows with the units.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, kernel

DONE, AT, LEAST, LEFT = range(4)
"""Places of the cursor: givers that have a taker; the giver at which a path goes on, or NONE before one begins; what
the path costs so far; how many takers it has not reached."""
CURSOR = 4
NONE = -1
FAR = 1 << 62


class LinearAssignment(NamedTuple):
    """The state of a search, by unit but for the cursor.

    `giver_price` and `taker_price` are dual prices. `giver` and `taker` are the pairs so far, NONE for none. Of a path:
    `before` is the giver from which a taker was reached, `cost` at which cost, and `order` has the takers, first those
    that were not reached yet.
    """

    begin: Numbers
    end: Numbers
    size: Numbers
    giver_price: Numbers
    taker_price: Numbers
    giver: Numbers
    taker: Numbers
    before: Numbers
    cost: Numbers
    order: Numbers
    cursor: Numbers


@kernel
def assign(s: LinearAssignment, looks: int) -> int:
    """Gives takers to givers in turn, and goes on where it ended before.

    Ends when all have one, or when it looked at so many pairs; returns how many they are.
    """
    looked, count = 0, len(s.size)
    while s.cursor[DONE] < count and looked < looks:
        if s.cursor[AT] == NONE:
            begin_path(s)
            looked += count
        looked += s.cursor[LEFT]
        reached = nearest(s)
        if s.giver[reached] == NONE:
            end_path(s, reached)
            looked += count
        else:
            s.cursor[AT] = s.giver[reached]
    return looked


def begin_path(s: LinearAssignment) -> None:
    """Begins a path at the next giver that has no taker."""
    count = len(s.size)
    for k in range(count):
        s.order[k], s.cost[k] = count - 1 - k, FAR
    s.cursor[AT], s.cursor[LEAST], s.cursor[LEFT] = s.cursor[DONE], 0, count


def nearest(s: LinearAssignment) -> int:
    """Returns the nearest taker that the path has not reached; of those as near, one that has no giver."""
    at, least, nearest_cost, place = s.cursor[AT], s.cursor[LEAST], FAR, 0
    for k in range(s.cursor[LEFT]):
        taker = s.order[k]
        saved = min(s.size[at], s.size[taker]) if s.end[at] <= s.begin[taker] else 0
        cost = least - saved - s.giver_price[at] - s.taker_price[taker]
        if cost < s.cost[taker]:
            s.before[taker], s.cost[taker] = at, cost
        if s.cost[taker] < nearest_cost or (s.cost[taker] == nearest_cost and s.giver[taker] == NONE):
            nearest_cost, place = s.cost[taker], k
    s.cursor[LEAST] = nearest_cost
    s.cursor[LEFT] -= 1
    last = s.cursor[LEFT]
    s.order[place], s.order[last] = s.order[last], s.order[place]
    return s.order[last]


def end_path(s: LinearAssignment, reached: int) -> None:
    """Changes prices and pairs along the path that ends at a taker without a giver."""
    first, least = s.cursor[DONE], s.cursor[LEAST]
    s.giver_price[first] += least
    for k in range(s.cursor[LEFT], len(s.size)):
        taker = s.order[k]
        s.taker_price[taker] -= least - s.cost[taker]
        if taker != reached:
            s.giver_price[s.giver[taker]] += least - s.cost[taker]
    taker = reached
    while taker != NONE:
        giver = s.before[taker]
        s.giver[taker] = giver
        taker, s.taker[giver] = s.taker[giver], taker
    s.cursor[AT], s.cursor[DONE] = NONE, first + 1
