"""Orders in which things that wait for each other can run. Things are positions 0 .. n-1."""

import heapq
from collections.abc import Collection, Sequence

from engine.text.errors import CycleError


def stable_order(waits_for: Sequence[Collection[int]], names: Sequence[str]) -> tuple[int, ...]:
    """Everything after all that it waits for; the given order wherever that leaves a choice (Kahn, smallest first).

    Raises CycleError, whose message names the members of one cycle.
    """
    order = _kahn(waits_for)
    if len(order) < len(waits_for):
        cycle = find_cycle(waits_for)
        shown = " -> ".join(names[i] for i in (*cycle, cycle[0]))
        raise CycleError(f"these wait for each other: {shown}")
    return tuple(order)


def find_cycle(waits_for: Sequence[Collection[int]]) -> tuple[int, ...]:
    """The members of one cycle, each in front of the one that waits for it; empty where there is none."""
    stuck = set(range(len(waits_for))) - set(_kahn(waits_for))
    if not stuck:
        return ()
    path: list[int] = []
    place: dict[int, int] = {}
    item = min(stuck)
    while item not in place:
        place[item] = len(path)
        path.append(item)
        item = min(other for other in waits_for[item] if other in stuck)
    return tuple(reversed(path[place[item] :]))


def _kahn(waits_for: Sequence[Collection[int]]) -> list[int]:
    """What can run, in order. What is left out is on a cycle or behind one."""
    waiting = [len(set(before)) for before in waits_for]
    followers: list[list[int]] = [[] for _ in waits_for]
    for item, before in enumerate(waits_for):
        for other in set(before):
            followers[other].append(item)
    ready = [item for item, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        item = heapq.heappop(ready)
        order.append(item)
        for follower in followers[item]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    return order
