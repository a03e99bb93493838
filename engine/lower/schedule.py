"""The schedule of a run: which call waits for which, and barriers between levels of calls."""

from collections.abc import Collection, Iterable
from itertools import groupby, product

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.concurrency import Dependences, levels
from allocator.policies.base import Waits
from allocator.problem import Column, column
from engine.lower.calls import Call, Instruction, Lowered
from engine.lower.updates import anti_dependences

BARRIER = -1
"""The tick of a node at which nothing runs."""
NOTHING = Waits()
"""No waits: only data decide, as no two chunks share bytes."""


@frozen(eq=False)
class Schedule:
    """The order constraints of a run.

    Node i is the call of tick `tick[i]`, or a barrier; nodes stand in a runnable order.

    Node after[k] starts when node before[k] is done; each pair stands there once. All inputs are fed before any node
    starts, and outputs are fetched when all are done. `policy` names the policy that made it; "" stands for one call
    after the other.
    """

    policy: str
    tick: Column = field(converter=column)
    before: Column = field(converter=column)
    after: Column = field(converter=column)

    def __len__(self) -> int:
        return len(self.tick)


def in_sequence(lowered: Lowered) -> Schedule:
    """Returns the schedule that runs one call after the other."""
    count = len(lowered.calls)
    return Schedule("", _ticks(lowered), np.arange(max(count - 1, 0)), np.arange(1, max(count, 1)))


def by_data(lowered: Lowered, policy: str, waits: Waits = NOTHING) -> Schedule:
    """Returns the schedule in which a call waits for its data, and for the `waits` of a policy."""
    if len(waits.level):
        return _with_barriers(lowered, policy, waits.level)
    pairs = np.unique(_nodes_that_wait(lowered, waits)[:, ::-1], axis=0)
    return Schedule(policy, _ticks(lowered), pairs[:, 1], pairs[:, 0])


def beside(lowered: Lowered, copies: Collection[int], waits: Waits) -> Schedule:
    """Returns the schedule of calls one after the other, beside which an engine makes the copies of some ticks.

    It makes one copy after the other. Between a call and a copy, data and `waits` decide.
    """
    ticks = _ticks(lowered)
    is_copy, nodes = np.isin(ticks, list(copies)), _nodes_that_wait(lowered, waits)
    lanes = [np.flatnonzero(lane) for lane in (is_copy, ~is_copy)]
    chains = [np.stack((lane[:-1], lane[1:]), axis=1) for lane in lanes]
    pairs = np.unique(np.concatenate((nodes[is_copy[nodes].sum(axis=1) == 1], *chains))[:, ::-1], axis=0)
    return Schedule("", ticks, pairs[:, 1], pairs[:, 0])


def _nodes_that_wait(lowered: Lowered, waits: Waits) -> Column:
    """Returns rows of (node, node that waits for it), by data and by `waits`.

    Only calls are nodes: what a copy engine copies may be in use up to the tick of an alias, for which nothing waits.
    """
    ticks = _ticks(lowered)
    edges = np.concatenate((data_edges(lowered), np.stack((waits.before, waits.after), axis=1)))
    return np.searchsorted(ticks, edges[np.isin(edges, ticks).all(axis=1)])


def in_queue(schedule: Schedule, copies: Collection[int]) -> Schedule:
    """Returns a schedule in which the copies of some ticks also wait for each other: one engine makes them."""
    nodes = np.flatnonzero(np.isin(schedule.tick, list(copies)))
    queue = np.stack((nodes[1:], nodes[:-1]), axis=1)
    pairs = np.unique(np.concatenate((np.stack((schedule.after, schedule.before), axis=1), queue)), axis=0)
    return Schedule(schedule.policy, schedule.tick, pairs[:, 1], pairs[:, 0])


def data_edges(lowered: Lowered) -> Column:
    """Returns rows of (tick of a call that writes, tick of a call that reads it or a view of it); each pair once.

    A call that updates a parameter comes after those that read its old value.
    """
    writers, edges = dict[int, tuple[int, ...]](), list[tuple[int, int]]()
    for instruction in lowered.instructions:
        sources = tuple(dict.fromkeys(tick for v in instruction.inputs for tick in writers.get(v, ())))
        if isinstance(instruction, Call):
            edges.extend((tick, instruction.tick) for tick in sources)
        writers.update(
            (v, (instruction.tick,) if isinstance(instruction, Call) else sources) for v in instruction.outputs
        )
    return _rows(dict.fromkeys(edges + anti_dependences(lowered)))


def dependences(lowered: Lowered) -> Dependences:
    """Returns the data edges in ticks, with the feed before and the fetch behind all calls.

    Aliases wait for nothing.
    """
    return _between_ends(data_edges(lowered), _ticks(lowered), len(lowered.instructions) + 1)


def nodes_between_ends(schedule: Schedule) -> Dependences:
    """Returns a schedule with the feed before its nodes and the fetch behind them.

    The nodes have the numbers from 1 on.
    """
    edges = np.stack((schedule.before + 1, schedule.after + 1), axis=1)
    return _between_ends(edges, np.arange(1, len(schedule) + 1), len(schedule) + 1)


def _between_ends(edges: Column, inner: Column, last: int) -> Dependences:
    """Returns the dependences of these steps, with step 0 before them and step `last` behind them."""
    feed = np.stack((np.zeros_like(inner), inner), axis=1)
    fetch = np.stack((inner, np.full_like(inner, last)), axis=1)
    rows = np.concatenate((edges, feed, fetch, [[0, last]]))
    return Dependences(last + 1, rows[:, 0], rows[:, 1])


def in_levels(lowered: Lowered) -> Lowered:
    """Returns the calls level after level; within a level in their order. An alias follows the value that it views."""
    level = levels(dependences(lowered)).tolist()
    writers, owner = lowered.writers, [v.owner for v in lowered.values]

    def tick(instruction: Instruction) -> int:
        return instruction.tick if isinstance(instruction, Call) else writers.get(owner[instruction.inputs[0]], 0)

    ordered = sorted(lowered.instructions, key=lambda instruction: level[tick(instruction)])
    return evolve(lowered, instructions=tuple(s.at(i) for i, s in enumerate(ordered, 1)))


def _with_barriers(lowered: Lowered, policy: str, level: Column) -> Schedule:
    """Returns a schedule of levels. Two levels need no barrier where one of them is a single call."""
    nodes = _Nodes()
    for _, calls in groupby(_ticks(lowered).tolist(), key=lambda tick: int(level[tick])):
        nodes.add_level(list(calls))
    rows = _rows(nodes.edges)
    return Schedule(policy, nodes.ticks, rows[:, 0], rows[:, 1])


@define(eq=False)
class _Nodes:
    """The nodes and edges so far, and the nodes of the last level."""

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
