"""Races found by brute force, and random schedules, for tests."""

from functools import cached_property

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from engine import ExecutionPlan
from engine.lower.calls import Storage
from engine.lower.schedule import BARRIER, Schedule, by_data
from engine.planning.placed import Place
from tests.helpers.graphs.random_graphs import Choose

Matrix = npt.NDArray[np.bool_]


def reach(schedule: Schedule) -> Matrix:
    """Returns [a, b]: whether a path of edges leads from node a to node b, by Warshall's algorithm."""
    reachable = np.zeros((len(schedule), len(schedule)), bool)
    reachable[schedule.before, schedule.after] = True
    for middle in range(len(schedule)):
        reachable |= reachable[:, [middle]] & reachable[[middle], :]
    return reachable


@frozen(eq=False, slots=False)
class Oracle:
    """All pairs of nodes and all bytes, in tables."""

    plan: ExecutionPlan

    @cached_property
    def columns(self) -> dict[tuple[Storage, int], range]:
        """Returns the columns that stand for the bytes of each storage."""
        ends: dict[tuple[Storage, int], int] = {}
        for place in self.plan.places:
            key = _key(place)
            ends[key] = max(ends.get(key, 0), place.layout.extent[1])
        starts = np.cumsum([0, *ends.values()]).tolist()
        return {key: range(start, start + size) for start, (key, size) in zip(starts, ends.items(), strict=False)}

    @cached_property
    def touched(self) -> tuple[Matrix, Matrix]:
        """Returns [node, byte] twice: whether the node reads the byte, and whether it writes it."""
        nodes, size = self.plan.schedule.tick.tolist(), sum(map(len, self.columns.values()))
        reads, writes = np.zeros((len(nodes), size), bool), np.zeros((len(nodes), size), bool)
        for call in self.plan.lowered.calls:
            node = nodes.index(call.tick)
            for value in call.inputs:
                reads[node, self._bytes(value)] = True
            for value in call.outputs + call.workspace:
                writes[node, self._bytes(value)] = True
        return reads, writes

    @cached_property
    def races(self) -> Matrix:
        """Returns [a, b, byte]: whether nodes a < b touch the byte, one of them writes it, and nothing orders them."""
        reads, writes = self.touched
        apart = np.triu(~reach(self.plan.schedule), 1)[:, :, np.newaxis]
        one, other = writes[:, np.newaxis], writes[np.newaxis]
        met: Matrix = (one & (other | reads[np.newaxis])) | (reads[:, np.newaxis] & other)
        return met & apart

    def column(self, place: Place) -> range:
        """Returns the columns of the storage that a place lies in."""
        return self.columns[_key(place)]

    def _bytes(self, value: int) -> list[int]:
        place = self.plan.places[value]
        return list(self.column(place)[slice(*place.layout.extent)])


def _key(place: Place) -> tuple[Storage, int]:
    return place.storage, 0 if place.storage is Storage.ARENA else place.owner


def random_schedule(plan: ExecutionPlan, choose: Choose) -> Schedule:
    """Returns calls in order with barriers among them, and random edges; with all edges of the data or without."""
    ticks = list[int]()
    for call in plan.lowered.calls:
        ticks += [BARRIER] * (choose(4) == 0) + [call.tick]
    data = by_data(plan.lowered, "")
    pairs = zip(data.tick[data.before].tolist(), data.tick[data.after].tolist(), strict=True)
    edges = {(ticks.index(a), ticks.index(b)) for a, b in pairs} if choose(4) else set()
    sparse = 1 + choose(8)
    edges |= {(a, b) for b in range(len(ticks)) for a in range(b) if choose(sparse) == 0}
    rows = np.array(sorted(edges), np.int64).reshape(-1, 2)
    return Schedule("random", ticks, rows[:, 0], rows[:, 1])


def one_afloat(plan: ExecutionPlan, choose: Choose) -> Schedule:
    """Returns one call after the other, but for one that may run at once with some of the following ones."""
    count = len(plan.lowered.calls)
    rows = np.argwhere(np.triu(np.ones((count, count), bool), 1))
    if count:
        free = choose(count)
        last = free + choose(count - free)
        rows = rows[(rows[:, 0] != free) | (rows[:, 1] > last)]
    return Schedule("afloat", [call.tick for call in plan.lowered.calls], rows[:, 0], rows[:, 1])


def scrambled(plan: ExecutionPlan, choose: Choose) -> ExecutionPlan:
    """Places the values of the arena anywhere in few bytes: calls make no sense, but touch bytes all the same."""
    most = 1 + 4 * choose(60)
    return evolve(plan, places=tuple(_anywhere(p, choose(most)) for p in plan.places))


def _anywhere(place: Place, low: int) -> Place:
    if place.storage is not Storage.ARENA:
        return place
    return evolve(place, layout=evolve(place.layout, offset=place.layout.offset - place.layout.extent[0] + low))
