"""Units in memories by load: which memory has room for a unit in all ticks of its life.

A unit has parts: `size` bytes in the ticks [first, last). With M memories, memory number M stands for none: it has
room for everything. `rank` lists the memories of each unit, the one that is wanted most first and M last, in rows of
M + 1; what stands behind M is not looked at.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, kernel


class Assignment(NamedTuple):
    """The memory of each unit, and the bytes of each memory in each tick, memory after memory.

    The parts of unit k are start[k] to start[k + 1]. By memory, so that most questions for room need no look at each
    tick: `most`, what the load is in no tick above, and `full`, the place in `load` that had no room last.
    """

    start: Numbers
    first: Numbers
    last: Numbers
    size: Numbers
    rank: Numbers
    capacity: Numbers
    load: Numbers
    memory: Numbers
    most: Numbers
    full: Numbers


@kernel
def fill(s: Assignment, order: Numbers, wanted: Numbers) -> None:
    """Puts each unit of an order into the memory that is wanted for it, else into the first of its list that has room.

    No memory is wanted where `wanted` is M.
    """
    none = len(s.capacity)
    for k in range(len(order)):
        unit = order[k]
        memory = wanted[unit]
        if memory == none or not has_room(s, unit, memory):
            memory = first_with_room(s, unit)
        put(s, unit, memory)


def first_with_room(s: Assignment, unit: int) -> int:
    """Returns the first memory in the list of a unit that has room for it."""
    at = unit * (len(s.capacity) + 1)
    while not has_room(s, unit, s.rank[at]):
        at += 1
    return s.rank[at]


def has_room(s: Assignment, unit: int, memory: int) -> bool:
    """Returns whether a memory has room for a unit in all ticks of its life."""
    if memory == len(s.capacity):
        return True
    ticks = len(s.load) // len(s.capacity)
    for part in range(s.start[unit], s.start[unit + 1]):
        room = s.capacity[memory] - s.size[part]
        if s.most[memory] > room:
            first, last = memory * ticks + s.first[part], memory * ticks + s.last[part]
            if first <= s.full[memory] < last and s.load[s.full[memory]] > room:
                return False
            for at in range(first, last):
                if s.load[at] > room:
                    s.full[memory] = at
                    return False
    return True


def put(s: Assignment, unit: int, memory: int) -> None:
    """Puts a unit that lies nowhere into a memory."""
    s.memory[unit] = memory
    add(s, unit, memory, 1)


def take_out(s: Assignment, unit: int) -> None:
    """Takes a unit out of its memory."""
    add(s, unit, s.memory[unit], -1)
    s.memory[unit] = len(s.capacity)


def add(s: Assignment, unit: int, memory: int, times: int) -> None:
    """Adds the bytes of a unit to the load of a memory, so many times."""
    if memory == len(s.capacity):
        return
    ticks = len(s.load) // len(s.capacity)
    for part in range(s.start[unit], s.start[unit + 1]):
        for at in range(memory * ticks + s.first[part], memory * ticks + s.last[part]):
            s.load[at] += times * s.size[part]
            s.most[memory] = max(s.most[memory], s.load[at])
