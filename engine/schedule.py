"""What waits for what when a network runs: calls, and barriers between them."""

from collections.abc import Iterable

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column
from engine.calls import Lowered

BARRIER = -1
"""The tick of a node at which nothing runs."""


@frozen(eq=False)
class Schedule:
    """Node i stands for the call of tick `tick[i]`, or for a barrier. Nodes stand in a runnable order.

    Node after[k] starts when node before[k] is done; each pair stands there once. All inputs are fed before any node
    starts, and outputs are fetched when all are done. `policy` tells who made it; "" stands for one call after the
    other.
    """

    policy: str
    tick: Column = field(converter=column)
    before: Column = field(converter=column)
    after: Column = field(converter=column)

    def __len__(self) -> int:
        return len(self.tick)


def in_sequence(lowered: Lowered) -> Schedule:
    """One call after the other."""
    count = len(lowered.calls)
    return Schedule("", _ticks(lowered), np.arange(max(count - 1, 0)), np.arange(1, max(count, 1)))


def by_data(lowered: Lowered, policy: str) -> Schedule:
    """Each call waits for those that write what it reads, and for nothing else."""
    ticks = _ticks(lowered)
    before, after = data_edges(lowered)
    return Schedule(policy, ticks, np.searchsorted(ticks, before), np.searchsorted(ticks, after))


def data_edges(lowered: Lowered) -> tuple[Column, Column]:
    """(tick of the call that writes, tick of a call that reads it or a view of it); each pair once, by reader."""
    writers, owner = lowered.writers, [v.owner for v in lowered.values]
    made = list[tuple[int, int]]()
    for call in lowered.calls:
        sources = {writers[owner[v]] for v in call.inputs if owner[v] in writers}
        made.extend((tick, call.tick) for tick in sorted(sources))
    return _columns(made)


def _ticks(lowered: Lowered) -> Column:
    return column([call.tick for call in lowered.calls])


def _columns(edges: Iterable[tuple[int, int]]) -> tuple[Column, Column]:
    rows = np.array(list(edges), np.int64).reshape(-1, 2)
    return column(rows[:, 0]), column(rows[:, 1])
