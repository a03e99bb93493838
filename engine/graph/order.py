"""Stable topological orders of items that wait for each other. Items are positions 0 .. n-1."""

import heapq
from collections.abc import Collection, Sequence
from graphlib import CycleError as _Cycle
from graphlib import TopologicalSorter

from engine.text.errors import CycleError


def stable_order(waits_for: Sequence[Collection[int]], names: Sequence[str]) -> tuple[int, ...]:
    """Returns each item after all that it waits for; where that leaves a choice, the smallest comes first.

    Raises CycleError, whose message names the members of one cycle.
    """
    if all(first < item for item, firsts in enumerate(waits_for) for first in firsts):
        return tuple(range(len(waits_for)))
    sorter = TopologicalSorter(dict(enumerate(waits_for)))
    try:
        sorter.prepare()
    except _Cycle as error:
        cycle = " -> ".join(names[item] for item in error.args[1])  # the first member stands at the end again
        raise CycleError(f"these wait for each other: {cycle}") from error
    ready, order = list[int](), list[int]()
    while sorter.is_active():
        for item in sorter.get_ready():
            heapq.heappush(ready, item)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return tuple(order)
