"""Orders in which things that wait for each other can run. Things are positions 0 .. n-1."""

import heapq
from collections.abc import Collection, Sequence

from engine.errors import CycleError


def stable_order(waits_for: Sequence[Collection[int]], names: Sequence[str]) -> tuple[int, ...]:
    """Everything after all that it waits for; the given order wherever that leaves a choice (Kahn, smallest first).

    Raises CycleError, which names one cycle.
    """
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
    if len(order) < len(waits_for):
        cycle = find_cycle(waits_for)
        shown = " -> ".join(names[i] for i in (*cycle, cycle[0]))
        raise CycleError(f"these wait for each other: {shown}")
    return tuple(order)


def find_cycle(waits_for: Sequence[Collection[int]]) -> tuple[int, ...]:
    """The members of one cycle, each before the one that waits for it; empty where there is none."""
    stuck = _stuck(waits_for)
    if not stuck:
        return ()
    path, item = [], min(stuck)
    place: dict[int, int] = {}
    while item not in place:
        place[item] = len(path)
        path.append(item)
        item = min(other for other in waits_for[item] if other in stuck)
    return tuple(reversed(path[place[item] :]))


def _stuck(waits_for: Sequence[Collection[int]]) -> set[int]:
    """Items on a cycle or behind one: each of them waits for another one of them."""
    left = set(range(len(waits_for)))
    users: dict[int, list[int]] = {}
    for item, before in enumerate(waits_for):
        for other in set(before):
            users.setdefault(other, []).append(item)
    count = [len(set(before)) for before in waits_for]
    free = [item for item in left if not count[item]]
    while free:
        item = free.pop()
        left.discard(item)
        for user in users.get(item, ()):
            count[user] -= 1
            if not count[user]:
                free.append(user)
    return left
