"""Branch and bound over assignments: unit after unit into each memory that has room, while the bound allows."""

from typing import NamedTuple

from allocator.kernels.assignment import Assignment, has_room, put, take_out
from allocator.kernels.numbers import Numbers, kernel

ENDED, WHOLE, PAUSED = range(3)
"""Results: nothing is left to try; each unit has a memory; so many nodes were visited."""
DEPTH = 0
"""The place of the cursor with the number of units that have a memory."""


class Branching(NamedTuple):
    """The state of a search, in which units get memories in an `order`.

    `extra`: by how much the bound rises if a unit lies in a memory, in the order of the assignment's `rank`, ascending;
    `cost`: what it costs there. By depth: `choice`, the rank that is tried next, and `bound` and `spent`: what no
    assignment with the units so far goes below, by prices and by what they cost.
    """

    order: Numbers
    extra: Numbers
    cost: Numbers
    choice: Numbers
    bound: Numbers
    spent: Numbers
    cursor: Numbers


@kernel
def branch(s: Assignment, b: Branching, limit: int, nodes: int) -> int:
    """Goes on to the next assignment that costs less than a limit. Returns ENDED, WHOLE or PAUSED."""
    none, depth, count = len(s.capacity), b.cursor[DEPTH], len(b.order)
    while nodes > 0:
        nodes -= 1
        memory = none
        if depth < count:
            memory = next_memory(s, b, depth, limit)
        if memory == none:
            if depth == 0:
                b.cursor[DEPTH] = 0
                return ENDED
            depth -= 1
            take_out(s, b.order[depth])
            continue
        put(s, b.order[depth], memory)
        depth += 1
        if depth == count:
            b.cursor[DEPTH] = depth
            return WHOLE
        b.choice[depth] = 0
    b.cursor[DEPTH] = depth
    return PAUSED


def next_memory(s: Assignment, b: Branching, depth: int, limit: int) -> int:
    """Returns the next memory for the unit of a depth, and writes the bound of the depth below; M for none."""
    none, unit = len(s.capacity), b.order[depth]
    while b.choice[depth] < none:
        at = unit * (none + 1) + b.choice[depth]
        memory, bound = s.rank[at], b.bound[depth] + b.extra[at]
        if memory == none or bound >= limit:
            return none
        b.choice[depth] += 1
        spent = b.spent[depth] + b.cost[at]
        if spent < limit and has_room(s, unit, memory):
            b.bound[depth + 1], b.spent[depth + 1] = bound, spent
            return memory
    return none
