"""Units that change their memory between two visits: a copy lies elsewhere from then on, where that costs less.

A unit's route is the memory that it is in at each of its visits and between them; where the memory changes, its bytes
are read once and written once. The cheapest route of one unit, with what room the others leave, is a shortest path
(Viterbi 1967); registers have such routes where live ranges are split (Wimmer and Mossenboeck 2005). All routes are
improved unit after unit, then by ruin and recreate: some units that live at one time lose their routes, and get new
ones in another order (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck 2000).
"""

import math
import time
from collections.abc import Sequence
from itertools import pairwise
from operator import add
from random import Random
from typing import Any

import numpy as np
from attrs import define, field, frozen

from allocator.breadths import first_tick
from allocator.memories.problem import MemoryProblem, Seconds, transfer_seconds
from allocator.memories.units import Units
from allocator.problem import Column, column
from allocator.ragged import row_starts

STAYS = -1
"""The bytes of a copy where there can be none."""
ROUNDS = 100
"""How often routes are taken from some units and found again. With --drawn, tools/bench_moves.py shows what more rounds
are worth: ten times as many gain half a percent, in seven times the processor time."""
_TOGETHER = 8
"""Units that get new routes in one round, at most."""
_STOPS = 1000
"""A round counts once more for each so many stops: units with very many stops take no longer than others."""
_SAME = 1e-12
"""Costs that differ by no more than this part are the same."""


@frozen(eq=False)
class Visits:
    """The ticks in which calls touch units, a row for each unit and tick, in the order of units, then of ticks.

    `read` and `written` are bytes; `calls` counts the chunks of the unit that are touched. `leaving`: the bytes that a
    copy has which is made right behind the visit; `coming`: of one right before the next visit of the unit. Both are
    STAYS where none can be made.
    """

    unit: Column = field(converter=column)
    tick: Column = field(converter=column)
    read: Column = field(converter=column)
    written: Column = field(converter=column)
    calls: Column = field(converter=column)
    leaving: Column = field(converter=column)
    coming: Column = field(converter=column)


@frozen
class Change:
    """A unit changes its memory: right behind a visit, or right before the next one (`is_late`). `visit` is its row."""

    visit: int
    is_late: bool


@frozen(eq=False)
class Routes:
    """Changes of memory in the order of visits, and the seconds of all transfers, those of copies among them."""

    changes: tuple[Change, ...]
    seconds: float


def find_routes(
    units: Units,
    memory: Column,
    visits: Visits,
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
    seconds: float = math.inf,
) -> Routes:
    """Returns routes that cost no more than the assignment that they begin with: `memory` has that of each chunk.

    Bytes are kept within the capacities in each tick; no addresses are searched for. The search ends after so many
    rounds or seconds. The same arguments without limit of time have the same result.
    """
    routing = _Routing.of(units, visits, column(memory[units.ids]))
    routing.improve(Random(seed), rounds, time.monotonic() + seconds)
    return routing.routes()


@frozen(eq=False)
class _Stops:
    """The stops of a unit: runs of ticks with no change of memory in between.

    `profile` has the bytes of the unit in each tick from `begin` on. Stop k has its ticks [first[k], first[k + 1]), and
    costs seconds[k] in each memory. Behind it a copy of nbytes[k] can be made, where changes[k] says.
    """

    begin: int
    profile: Column
    first: Column
    seconds: Seconds
    nbytes: tuple[int, ...]
    changes: tuple[Change, ...]


@define(eq=False)
class _Routing:
    """`route` has, for each unit, the memory of each of its stops; `load` the bytes in each memory and tick.

    `copy_seconds` has, for copies of so many bytes, the seconds of those into each memory from each memory.
    """

    problem: MemoryProblem
    stops: tuple[_Stops, ...]
    capacities: Column
    route: list[Column]
    load: Any
    cost: Seconds
    copy_seconds: dict[int, list[list[float]]] = field(factory=dict)

    @classmethod
    def of(cls, units: Units, visits: Visits, memory: Column) -> "_Routing":
        problem = units.problem
        stops = tuple(_stops_of(units, visits))
        route = [column([m] * len(s.first)) for s, m in zip(stops, memory.tolist(), strict=True)]
        load = np.zeros((len(problem.memories), max(int(problem.chunks.end.max(initial=1)), 1)), np.int64)
        routing = cls(problem, stops, units.capacities, route, load, np.zeros(len(stops)))
        for unit in range(len(stops)):
            routing._add(unit, 1)
            routing.cost[unit] = routing._seconds(unit)
        return routing

    def routes(self) -> Routes:
        changes = list[Change]()
        for stops, route in zip(self.stops, self.route, strict=True):
            changes += (stops.changes[k] for k in np.flatnonzero(np.diff(route)).tolist())
        return Routes(tuple(sorted(changes, key=lambda c: (c.visit, c.is_late))), float(self.cost.sum()))

    def improve(self, random: Random, rounds: int, until: float) -> None:
        least = np.array([stops.seconds.min(axis=1).sum() for stops in self.stops])
        order = np.argsort(least - self.cost, kind="stable").tolist()
        improved = True
        while improved and time.monotonic() < until:
            improved = False
            for unit in order:
                if self.cost[unit] > least[unit] * (1 + _SAME):
                    improved |= self._again([unit])
        begin = np.array([stops.begin for stops in self.stops])
        end = np.array([stops.begin + len(stops.profile) for stops in self.stops])
        while rounds > 0:
            wanting = np.flatnonzero(self.cost > least * (1 + _SAME))
            if not len(wanting) or time.monotonic() >= until:
                break
            unit = int(wanting[random.randrange(len(wanting))])
            beside = np.flatnonzero((begin < end[unit]) & (begin[unit] < end))
            others = [other for other in beside.tolist() if other != unit]
            chosen = random.sample(others, min(len(others), random.randint(1, _TOGETHER)))
            self._again([unit, *chosen])
            rounds -= 1 + sum(len(self.route[one]) for one in (unit, *chosen)) // _STOPS

    def _again(self, chosen: Sequence[int]) -> bool:
        """Gives units new routes, one after the other; undone where that costs more. Returns whether it costs less."""
        before = [(unit, self.route[unit], float(self.cost[unit])) for unit in chosen]
        was = sum(cost for _, _, cost in before)
        for unit in chosen:
            self._add(unit, -1)
        total, done = 0.0, list[int]()
        for unit in chosen:
            route = self._cheapest(unit)
            if route is None:
                break
            self.route[unit] = route
            self.cost[unit] = self._seconds(unit)
            self._add(unit, 1)
            total += float(self.cost[unit])
            done.append(unit)
        if len(done) == len(chosen) and total <= was * (1 + _SAME):
            return total < was * (1 - _SAME)
        for unit in done:
            self._add(unit, -1)
        for unit, route, cost in before:
            self.route[unit], self.cost[unit] = route, cost
            self._add(unit, 1)
        return False

    def _add(self, unit: int, sign: int) -> None:
        """Adds the bytes of a unit to the load, or takes them from it."""
        stops, route = self.stops[unit], self.route[unit]
        changes = np.flatnonzero(np.diff(route)) + 1
        edges = [0, *stops.first[changes].tolist(), len(stops.profile)]
        for memory, (first, end) in zip(route[[0, *changes]].tolist(), pairwise(edges), strict=True):
            self.load[memory, stops.begin + first : stops.begin + end] += sign * stops.profile[first:end]

    def _cheapest(self, unit: int) -> Column | None:
        """Returns the cheapest route in the room that is left; None where there is none."""
        stops = self.stops[unit]
        total, *costs = np.where(self._has_room(stops), stops.seconds, np.inf).tolist()
        came = list[list[int]]()
        for cost, nbytes in zip(costs, stops.nbytes, strict=True):
            ways = [list(map(add, total, into)) for into in self._copies(nbytes)]
            least = list(map(min, ways))
            came.append([way.index(seconds) for way, seconds in zip(ways, least, strict=True)])
            total = list(map(add, least, cost))
        memory = total.index(min(total))
        if not math.isfinite(total[memory]):
            return None
        route = [memory]
        for back in reversed(came):
            route.append(back[route[-1]])
        return column(route[::-1])

    def _has_room(self, stops: _Stops) -> Any:
        profile = stops.profile
        load = self.load[:, stops.begin : stops.begin + len(profile)] + profile
        peak = np.maximum.reduceat(np.where(profile > 0, load, 0), stops.first, axis=1)
        return (peak <= self.capacities[:, None]).T

    def _copies(self, nbytes: int) -> list[list[float]]:
        """Returns the seconds of a copy into each memory, from each memory; 0 where it stays."""
        if nbytes not in self.copy_seconds:
            sizes = column([nbytes, 0]), column([0, nbytes]), column([1, 1])
            read, write = transfer_seconds(self.problem.memories, *sizes)
            seconds = write[:, None] + read
            np.fill_diagonal(seconds, 0.0)
            self.copy_seconds[nbytes] = seconds.tolist()
        return self.copy_seconds[nbytes]

    def _seconds(self, unit: int) -> float:
        stops, route = self.stops[unit], self.route[unit]
        seconds = float(stops.seconds[np.arange(len(route)), route].sum())
        for k in np.flatnonzero(np.diff(route)).tolist():
            seconds += self._copies(stops.nbytes[k])[int(route[k + 1])][int(route[k])]
        return seconds


def _stops_of(units: Units, visits: Visits) -> list[_Stops]:
    """Returns the stops of each unit; a unit with no bytes has one, without ticks."""
    profiles = _profiles(units)
    start = row_starts(visits.unit, len(units)).tolist()
    seconds = transfer_seconds(units.problem.memories, visits.read, visits.written, visits.calls)
    stops = []
    for unit, (begin, profile) in enumerate(profiles):
        stops.append(_stops(units, visits, seconds, (unit, begin, profile), range(start[unit], start[unit + 1])))
    return stops


def _stops(units: Units, visits: Visits, seconds: Seconds, whole: tuple[int, int, Column], rows: range) -> _Stops:
    unit, begin, profile = whole
    can, end = units.can[unit], begin + len(profile)
    first, costs, nbytes, changes = [begin], [np.zeros(len(can))], list[int](), list[Change]()
    for row in rows:
        costs[-1] = costs[-1] + seconds[row]
        if row + 1 == rows.stop:
            break
        for tick, size, change in (
            (int(visits.tick[row]) + 1, int(visits.leaving[row]), Change(row, is_late=False)),
            (int(visits.tick[row + 1]), int(visits.coming[row]), Change(row, is_late=True)),
        ):
            if size != STAYS and first[-1] < tick < end:
                first.append(tick)
                costs.append(np.zeros(len(can)))
                nbytes.append(size)
                changes.append(change)
    where: Seconds = np.where(can, np.array(costs), np.inf)
    return _Stops(begin, profile, column(np.array(first) - begin), where, tuple(nbytes), tuple(changes))


def _profiles(units: Units) -> list[tuple[int, Column]]:
    """Returns, for each unit, its first tick and its bytes in each tick from there on; one tick at least."""
    chunks = units.problem.chunks
    enter, profiles = first_tick(chunks), []
    members: list[list[int]] = [[] for _ in range(len(units))]
    for chunk, unit in enumerate(units.unit_of.tolist()):
        if chunks.size[chunk] > 0 and enter[chunk] < chunks.end[chunk]:
            members[unit].append(chunk)
    for rows in members:
        begin = int(enter[rows].min(initial=1 << 62)) if rows else 0
        profile = np.zeros(max(int(chunks.end[rows].max(initial=0)) - begin, 1), np.int64)
        for row in rows:
            profile[enter[row] - begin : chunks.end[row] - begin] += chunks.size[row]
        profiles.append((begin, column(profile)))
    return profiles
