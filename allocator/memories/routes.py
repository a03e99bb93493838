"""Units that change their memory between two visits: a copy lies elsewhere from then on, where that costs less.

A unit's route is the memory that it is in at each of its visits and between them; where the memory changes, its bytes
are read once and written once. A unit that can be computed again may have no bytes between two visits: its route then
has one place more, in which nothing takes room, and what it costs to come from there is the time of the computation.
A copy engine copies while calls run that do not touch the unit: then the unit has bytes in both memories for so long,
and only the part of the copy that is longer than these calls costs time. A unit that stays, such as a constant,
is where it is all the time: its route has copies elsewhere, which are made of the unit
itself and dropped at no cost. The cheapest route of one unit, with what room the others leave, is a shortest path
(Viterbi 1967); registers have such routes where live ranges are split (Wimmer and Mossenboeck 2005). All routes are
improved unit after unit, then by ruin and recreate: some units that live at one time lose their routes, and get new
ones in another order (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck 2000).
"""

import math
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from operator import add
from random import Random
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.breadths import first_tick
from allocator.memories.changes import Change, Engine, Gap
from allocator.memories.problem import Mask, MemoryProblem, Seconds, transfer_seconds
from allocator.memories.units import Units
from allocator.problem import Column, column
from allocator.ragged import row_starts

NO_HOME = -1
"""The memory in which a unit is all the time that does not stay where it is."""
ROUNDS = 100
"""How often routes are taken from some units and found again. With --drawn, tools/bench_moves.py shows what more rounds
are worth: ten times as many gain half a percent, in seven times the processor time."""
NO_CLOCK: Seconds = np.zeros(0)
"""The clock where there is no copy engine."""
_TOGETHER = 8
"""Units that get new routes in one round, at most."""
_STOPS = 1000
"""A round counts once more for each so many stops: units with very many stops take no longer than others."""
_RENT = 1e-6
"""What a copy of a unit that stays costs, as a part of its visits, if it is there all the time: of routes that cost the
same, the one whose copies are there for the shortest time is taken."""
_SAME = 1e-12
"""Costs that differ by no more than this part are the same."""
_UNLIMITED = 1 << 62
"""The bytes that may lie nowhere, where units are dropped to be computed again."""
_Way = tuple[float, int, tuple[int, ...]]
"""The seconds of a route, the home of its unit, and the memory of each stop."""


@frozen(eq=False)
class Visits:
    """The ticks in which calls touch units, a row for each unit and tick, in the order of units, then of ticks.

    `read` and `written` are bytes; `calls` counts the chunks of the unit that are touched. `leaving`: the bytes that a
    copy has which is made right behind the visit; `coming`: of one right before the next visit of the unit. Both are
    STAYS where none can be made. `staying` are the units that stay where they are, which may be any memory with room,
    when copies of them are made; before their first visit and behind their last one there is none.
    `again` has visits between which and the next one a unit may be dropped, with the seconds in which it is computed
    again in each memory; those of units that stay are none.
    """

    unit: Column = field(converter=column)
    tick: Column = field(converter=column)
    read: Column = field(converter=column)
    written: Column = field(converter=column)
    calls: Column = field(converter=column)
    leaving: Column = field(converter=column)
    coming: Column = field(converter=column)
    staying: frozenset[int] = field(default=frozenset(), kw_only=True)
    again: Mapping[int, tuple[float, ...]] = field(factory=dict, kw_only=True)


@frozen(eq=False)
class Routes:
    """Changes of memory in the order of visits, and the seconds of all transfers, those of copies among them.

    Of a copy that an engine makes beside calls, what is longer than these counts, and HIDDEN of it at the least.
    """

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
    begins: Seconds = NO_CLOCK,
    moments: int = 2,
) -> Routes:
    """Returns routes that cost no more than the assignment that they begin with: `memory` has that of each chunk.

    `begins` has the seconds at which each tick begins, and at which the last one ends: then copies between memories
    with a copy engine run beside calls. Without, copies run in their turn, at `moments` between two
    visits at most.
    Bytes are kept within the capacities in each tick; no addresses are searched for. The search ends after so many
    rounds or seconds. The same arguments without limit of time have the same result.
    """
    routing = _Routing.of(units, visits, column(memory[units.ids]), Engine(units.problem.memories, begins, moments))
    routing.improve(Random(seed), rounds, time.monotonic() + seconds)
    return routing.routes()


@frozen(eq=False)
class _Stops:
    """The stops of a unit: runs of ticks with no change of memory in between.

    `profile` has the bytes of the unit in each tick from `begin` on. Stop k has its ticks [first[k], first[k + 1]), and
    costs seconds[k] in each memory. Behind it a copy can be made in gaps[k]. Where the unit stays, `own` has its bytes,
    which lie in its home all the time, and `profile` those of a copy. A unit that may be dropped has one place behind
    the memories, which costs nothing between visits. `homes` says where a unit that stays may do so.
    """

    begin: int
    profile: Column
    first: Column
    seconds: Seconds
    gaps: tuple[Gap, ...]
    own: Column = field(converter=column, default=())
    homes: Sequence[bool] = ()

    @property
    def places(self) -> int:
        """Returns the number of memories, and one more where the unit may be dropped."""
        return int(self.seconds.shape[1])

    def staying(self, homes: Mask) -> "_Stops":
        """Returns the stops of the unit where it stays, in one of `homes`, and copies of it have bytes of their own."""
        nbytes = max((gap.nbytes for gap in self.gaps), default=0)
        return evolve(self, profile=np.full(len(self.profile), nbytes), own=self.profile, homes=homes.tolist())

    def rent(self, home: int) -> Seconds:
        """Returns what the copies of a unit that stays cost for their room, at each stop in each memory."""
        ticks = np.diff(self.first, append=len(self.profile))
        rent: Seconds = np.repeat(ticks[:, None], self.seconds.shape[1], axis=1) * float(self.seconds[:, home].sum())
        rent[:, home] = 0.0
        return rent * (_RENT / len(self.profile))


@define(eq=False)
class _Routing:
    """`route` has, for each unit, the memory of each of its stops; `load` the bytes in each memory and tick; those
    that are nowhere behind them.

    `home` has the memory in which each unit that stays is all the time; NO_HOME for the others. `costs` has what copies
    in gaps cost.
    """

    problem: MemoryProblem
    engine: Engine
    stops: tuple[_Stops, ...]
    capacities: Column
    route: list[Column]
    home: list[int]
    load: Any
    cost: Seconds
    costs: dict[tuple[float, ...], list[list[float]]] = field(factory=dict)

    @classmethod
    def of(cls, units: Units, visits: Visits, memory: Column, engine: Engine) -> "_Routing":
        problem = units.problem
        plain = enumerate(_stops_of(units, visits, engine))
        stops = tuple(s.staying(units.can[unit]) if unit in visits.staying else s for unit, s in plain)
        home = [m if unit in visits.staying else NO_HOME for unit, m in enumerate(memory.tolist())]
        route = [column([m] * len(s.first)) for s, m in zip(stops, memory.tolist(), strict=True)]
        load = np.zeros((len(problem.memories) + 1, max(int(problem.chunks.end.max(initial=1)), 1)), np.int64)
        routing = cls(
            problem, engine, stops, column([*units.capacities, _UNLIMITED]), route, home, load, np.zeros(len(stops))
        )
        for unit in range(len(stops)):
            routing._add(unit, 1)
            routing.cost[unit] = routing._seconds(unit)
        return routing

    def routes(self) -> Routes:
        changes = list[Change]()
        for stops, route, home in zip(self.stops, self.route, self.home, strict=True):
            for k in np.flatnonzero(np.diff(route)).tolist():
                gap, into = stops.gaps[k], int(route[k + 1])
                if into == home:
                    changes.append(Change(gap.visit, gap.tick - 1, is_back=True))
                elif into < len(self.problem.memories):
                    changes.append(self.engine.change(gap, into, int(route[k]) if home == NO_HOME else home))
        return Routes(tuple(sorted(changes, key=lambda c: (c.visit, c.after))), float(self.cost.sum()))

    def improve(self, random: Random, rounds: int, until: float) -> None:
        least = np.array([stops.seconds.min(axis=1).sum() for stops in self.stops])
        order = np.argsort(least - self.cost, kind="stable").tolist()
        staying = [unit for unit in order if self.home[unit] != NO_HOME]
        improved = True
        while improved and time.monotonic() < until:
            improved = False
            for unit in order:
                if self.cost[unit] > least[unit] * (1 + _SAME):
                    improved |= self._again([unit])
            improved |= self._again(staying, is_away=True)
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
            self._again([unit, *chosen], is_away=bool(staying) and random.random() < 0.5)
            rounds -= 1 + sum(len(self.route[one]) for one in (unit, *chosen)) // _STOPS

    def _again(self, chosen: Sequence[int], *, is_away: bool = False) -> bool:
        """Gives units new routes, one after the other; undone where that costs more. Returns whether it costs less.

        `is_away`: those that stay may not do so where their visits cost least. There each of them costs less than with
        copies, but takes the room of many copies.
        """
        before = [(unit, self.route[unit], self.home[unit], float(self.cost[unit])) for unit in chosen]
        was = sum(cost for *_, cost in before)
        for unit in chosen:
            self._add(unit, -1)
        total, done = 0.0, list[int]()
        for unit in chosen:
            ways = self._ways(unit, is_away=is_away)
            if not ways:
                break
            _, self.home[unit], memories = min(ways)
            self.route[unit] = column(memories)
            self.cost[unit] = self._seconds(unit)
            self._add(unit, 1)
            total += float(self.cost[unit])
            done.append(unit)
        if len(done) == len(chosen) and total <= was * (1 + _SAME):
            return total < was * (1 - _SAME)
        for unit in done:
            self._add(unit, -1)
        for unit, route, home, cost in before:
            self.route[unit], self.home[unit], self.cost[unit] = route, home, cost
            self._add(unit, 1)
        return False

    def _add(self, unit: int, sign: int) -> None:
        """Adds the bytes of a unit to the load, or takes them from it."""
        stops, route, home = self.stops[unit], self.route[unit], self.home[unit]
        if home != NO_HOME:
            self.load[home, stops.begin : stops.begin + len(stops.own)] += sign * stops.own
        changes = np.flatnonzero(np.diff(route)) + 1
        edges = [0, *stops.first[changes].tolist(), len(stops.profile)]
        for memory, (first, end) in zip(route[[0, *changes]].tolist(), pairwise(edges), strict=True):
            if memory != home:
                self.load[memory, stops.begin + first : stops.begin + end] += sign * stops.profile[first:end]

    def _ways(self, unit: int, *, is_away: bool) -> list[_Way]:
        """Returns the cheapest route in the room that is left: for a unit that stays, one for each home."""
        stops = self.stops[unit]
        if not stops.own.size:
            return self._cheapest(stops, NO_HOME)
        room = self.capacities[:-1, None] - self.load[:-1, stops.begin : stops.begin + len(stops.own)]
        homes = (room >= stops.own).all(axis=1) & stops.homes
        if is_away:
            homes[np.argmin(stops.seconds.sum(axis=0))] = False
        return [way for home in np.flatnonzero(homes).tolist() for way in self._cheapest(stops, home)]

    def _cheapest(self, stops: _Stops, home: int) -> list[_Way]:
        """Returns the cheapest route in the room that is left; none where there is none."""
        seconds = np.where(self._has_room(stops, home), stops.seconds, np.inf)
        if home != NO_HOME:
            seconds += stops.rent(home)
            seconds[0, np.arange(stops.places) != home] = np.inf
        total, *costs = seconds.tolist()
        came = list[list[int]]()
        for k, cost in enumerate(costs):
            ways = [list(map(add, total, into)) for into in self._copies(stops, k, home)]
            least = list(map(min, ways))
            came.append([way.index(seconds) for way, seconds in zip(ways, least, strict=True)])
            total = list(map(add, least, cost))
        memory = total.index(min(total))
        if not math.isfinite(total[memory]):
            return []
        route = [memory]
        for back in reversed(came):
            route.append(back[route[-1]])
        return [(total[memory], home, tuple(reversed(route)))]

    def _has_room(self, stops: _Stops, home: int) -> Any:
        profile = stops.profile
        load = self.load[: stops.places, stops.begin : stops.begin + len(profile)] + profile
        peak = np.maximum.reduceat(np.where(profile > 0, load, 0), stops.first, axis=1)
        has_room = peak <= self.capacities[: stops.places, None]
        if home != NO_HOME:  # copies are written
            has_room &= np.array([[memory.writable] for memory in self.problem.memories])
            has_room[home] = True
        return has_room.T

    def _copies(self, stops: _Stops, k: int, home: int) -> list[list[float]]:
        """Returns what a change of memory behind a stop costs, into each memory, from each; 0 where it stays."""
        gap = stops.gaps[k]
        key: tuple[float, ...] = gap.nbytes, gap.leaving, gap.entering, home, gap.tick < gap.back
        if stops.places > len(self.problem.memories):
            key = *key, gap.tick == gap.left + 1, *gap.again
        if key not in self.costs:
            if stops.places > len(self.problem.memories):
                costs = self.engine.costs_with_dropping(gap)
            else:
                costs = self.engine.costs(gap) if home == NO_HOME else self.engine.costs_from(gap, home)
            self.costs[key] = costs.tolist()
        return self.costs[key]

    def _seconds(self, unit: int) -> float:
        stops, route = self.stops[unit], self.route[unit]
        seconds = float(stops.seconds[np.arange(len(route)), route].sum())
        for k in np.flatnonzero(np.diff(route)).tolist():
            seconds += self._copies(stops, k, self.home[unit])[int(route[k + 1])][int(route[k])]
        return seconds


def _stops_of(units: Units, visits: Visits, engine: Engine) -> list[_Stops]:
    """Returns the stops of each unit; a unit with no bytes has one, without ticks."""
    profiles = _profiles(units)
    start = row_starts(visits.unit, len(units)).tolist()
    seconds = transfer_seconds(units.problem.memories, visits.read, visits.written, visits.calls)
    stops = []
    for unit, (begin, profile) in enumerate(profiles):
        rows = range(start[unit], start[unit + 1])
        gaps = [list(engine.gaps(*_between(visits, row))) for row in rows[:-1]]
        can, costs = units.can[unit] | (unit in visits.staying), seconds[rows.start : rows.stop]
        if not visits.again.keys().isdisjoint(rows):
            can, costs = np.append(can, True), np.pad(costs, ((0, 0), (0, 1)), constant_values=np.inf)
        stops.append(_stops(can, costs, (begin, profile), gaps))
    return stops


def _between(visits: Visits, row: int) -> tuple[Gap, int]:
    """Returns the moment right behind a visit, and the bytes of a copy right before the next one."""
    columns = visits.tick[row], visits.tick[row + 1], visits.leaving[row], visits.coming[row]
    left, back, leaving, coming = map(int, columns)
    return Gap(row, left, left + 1, back, leaving, again=visits.again.get(row, ())), coming


def _stops(can: Mask, seconds: Seconds, whole: tuple[int, Column], gaps_of: Sequence[Sequence[Gap]]) -> _Stops:
    begin, profile = whole
    end = begin + len(profile)
    first, costs, gaps = [begin], [np.zeros(len(can))], list[Gap]()
    for visit, between in zip_longest(seconds, gaps_of, fillvalue=()):
        costs[-1] = costs[-1] + visit
        for gap in between:
            if first[-1] < gap.tick < end:
                first.append(gap.tick)
                costs.append(np.zeros(len(can)))
                gaps.append(gap)
    where: Seconds = np.where(can, np.array(costs), np.inf)
    return _Stops(begin, profile, column(np.array(first) - begin), where, tuple(gaps))


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
