"""What waits for what when a network runs: calls, and barriers between them."""

from collections.abc import Iterable
from itertools import groupby, product

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.concurrency import Dependences, levels
from allocator.policies.base import Waits
from allocator.problem import Column, column
from engine.lower.calls import Call, Lowered, Stage
from engine.lower.updates import anti_dependences

BARRIER = -1
"""The tick of a node at which nothing runs."""
NOTHING = Waits()
"""What must wait besides for its data where no two chunks share bytes."""


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


def by_data(lowered: Lowered, policy: str, waits: Waits = NOTHING) -> Schedule:
    """Each call waits for those that write what it reads, and for what it must wait for besides."""
    if len(waits.level):
        return _with_barriers(lowered, policy, waits.level)
    ticks = _ticks(lowered)
    edges = np.concatenate((data_edges(lowered), np.stack((waits.before, waits.after), axis=1)))
    known = np.unique(edges[edges[:, 0] > 0][:, ::-1], axis=0)
    return Schedule(policy, ticks, np.searchsorted(ticks, known[:, 1]), np.searchsorted(ticks, known[:, 0]))


def data_edges(lowered: Lowered) -> Column:
    """Rows of (tick of a call that writes, tick of a call that reads it or a view of it); each pair once.

    A call that updates a parameter comes after those that read its old value.
    """
    writers, made = dict[int, tuple[int, ...]](), list[tuple[int, int]]()
    for stage in lowered.stages:
        sources = tuple(dict.fromkeys(tick for v in stage.inputs for tick in writers.get(v, ())))
        if isinstance(stage, Call):
            made.extend((tick, stage.tick) for tick in sources)
        writers.update((v, (stage.tick,) if isinstance(stage, Call) else sources) for v in stage.outputs)
    return _rows(dict.fromkeys(made + anti_dependences(lowered)))


def dependences(lowered: Lowered) -> Dependences:
    """The same in ticks, with the feed before and the fetch behind all calls. Aliases wait for nothing."""
    return _between_ends(data_edges(lowered), _ticks(lowered), len(lowered.stages) + 1)


def nodes_between_ends(schedule: Schedule) -> Dependences:
    """A schedule with the feed in front of all its nodes, which are then numbered from 1 on, and the fetch behind."""
    edges = np.stack((schedule.before + 1, schedule.after + 1), axis=1)
    return _between_ends(edges, np.arange(1, len(schedule) + 1), len(schedule) + 1)


def _between_ends(edges: Column, inner: Column, last: int) -> Dependences:
    """These steps, step 0 in front of them and step `last` behind."""
    feed = np.stack((np.zeros_like(inner), inner), axis=1)
    fetch = np.stack((inner, np.full_like(inner, last)), axis=1)
    rows = np.concatenate((edges, feed, fetch, [[0, last]]))
    return Dependences(last + 1, rows[:, 0], rows[:, 1])


def in_levels(lowered: Lowered) -> Lowered:
    """The same calls, level after level; in one level as they stood. An alias follows what it looks at."""
    level = levels(dependences(lowered)).tolist()
    writers, owner = lowered.writers, [v.owner for v in lowered.values]

    def tick(stage: Stage) -> int:
        return stage.tick if isinstance(stage, Call) else writers.get(owner[stage.inputs[0]], 0)

    ordered = sorted(lowered.stages, key=lambda stage: level[tick(stage)])
    return evolve(lowered, stages=tuple(evolve(s, tick=i) for i, s in enumerate(ordered, 1)))


def _with_barriers(lowered: Lowered, policy: str, level: Column) -> Schedule:
    """Calls stand level after level. No barrier is needed where one of two levels is a single call."""
    made = _Nodes()
    for _, calls in groupby(_ticks(lowered).tolist(), key=lambda tick: int(level[tick])):
        made.add_level(list(calls))
    rows = _rows(made.edges)
    return Schedule(policy, made.ticks, rows[:, 0], rows[:, 1])


@define(eq=False)
class _Nodes:
    """Nodes and edges so far, and the nodes of the last level."""

    ticks: list[int] = field(factory=list)
    edges: list[tuple[int, int]] = field(factory=list)
    last: list[int] = field(factory=list)

    def add_level(self, ticks: list[int]) -> None:
        if min(len(self.last), len(ticks)) > 1:
            self.last = self._add([BARRIER])
        self.last = self._add(ticks)

    def _add(self, ticks: list[int]) -> list[int]:
        nodes = list(range(len(self.ticks), len(self.ticks) + len(ticks)))
        self.ticks += ticks
        self.edges += product(self.last, nodes)
        return nodes


def _ticks(lowered: Lowered) -> Column:
    return column([call.tick for call in lowered.calls])


def _rows(edges: Iterable[tuple[int, int]]) -> Column:
    return np.array(list(edges), np.int64).reshape(-1, 2)
