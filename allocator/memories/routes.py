"""Units that change their memory between two visits: a copy lies elsewhere from then on, where that costs less.

A unit's route is the memory that it is in at each of its visits and between them; where the memory changes, its bytes
are read once and written once. A copy engine does that while calls run that do not touch the unit: then the unit has
bytes in both memories for so long, and only the part of the copy that is longer than these calls costs time. A unit
that stays, such as a constant, is where it is all the time: its route has copies elsewhere, which are made of the unit
itself and dropped at no cost. The cheapest route of one unit, with what room the others leave, is a shortest path
(Viterbi 1967); registers have such routes where live ranges are split (Wimmer and Mossenboeck 2005). All routes are
improved unit after unit, then by ruin and recreate: some units that live at one time lose their routes, and get new
ones in another order (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck 2000).
"""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from operator import add
from random import Random
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.breadths import first_tick
from allocator.memories.memory import Memory
from allocator.memories.problem import Mask, MemoryProblem, Seconds, transfer_seconds
from allocator.memories.units import Units
from allocator.problem import Column, column
from allocator.ragged import row_starts

STAYS = -1
"""The bytes of a copy where there can be none."""
NO_HOME = -1
"""The memory in which a unit is all the time that does not stay where it is."""
IN_TURN = -1
"""The last tick of a copy that no engine makes."""
HIDDEN = 0.05
"""The part of its time that a copy costs even where it is hidden, as one engine makes all copies one after the other.
tools/bench_moves.py has networks with a copy engine."""
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
_Way = tuple[float, int, tuple[int, ...]]
"""The seconds of a route, the home of its unit, and the memory of each stop."""


@frozen(eq=False)
class Visits:
    """The ticks in which calls touch units, a row for each unit and tick, in the order of units, then of ticks.

    `read` and `written` are bytes; `calls` counts the chunks of the unit that are touched. `leaving`: the bytes that a
    copy has which is made right behind the visit; `coming`: of one right before the next visit of the unit. Both are
    STAYS where none can be made. `staying` are the units that stay where they are, which may be any memory with room,
    when copies of them are made; before their first visit and behind their last one there is none.
    """

    unit: Column = field(converter=column)
    tick: Column = field(converter=column)
    read: Column = field(converter=column)
    written: Column = field(converter=column)
    calls: Column = field(converter=column)
    leaving: Column = field(converter=column)
    coming: Column = field(converter=column)
    staying: frozenset[int] = field(default=frozenset(), kw_only=True)


@frozen
class Change:
    """A unit changes its memory between a visit and the next one; `visit` is its row.

    The copy begins behind the tick `after`. A copy engine makes it beside the ticks up to `until`; IN_TURN where it is
    over before any other tick. `is_back`: the copy of a unit that stays is dropped.
    """

    visit: int
    after: int
    until: int = IN_TURN
    is_back: bool = False


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
) -> Routes:
    """Returns routes that cost no more than the assignment that they begin with: `memory` has that of each chunk.

    `begins` has the seconds at which each tick begins, and at which the last one ends: then copies between memories
    with a copy engine run beside calls. Without, copies run in their turn.
    Bytes are kept within the capacities in each tick; no addresses are searched for. The search ends after so many
    rounds or seconds. The same arguments without limit of time have the same result.
    """
    routing = _Routing.of(units, visits, column(memory[units.ids]), _Engine(units.problem.memories, begins))
    routing.improve(Random(seed), rounds, time.monotonic() + seconds)
    return routing.routes()


@frozen
class _Gap:
    """A moment between a visit in the tick `left` and the next one in `back`, at which a unit can change its memory.

    The moment is that before `tick`. To a slower memory, the bytes in the faster one stay until then; to a faster one
    they are there from then on. `leaving` and `entering` are the seconds of the calls beside which an engine then makes
    the copy, of `nbytes`.
    """

    visit: int
    left: int
    tick: int
    back: int
    nbytes: int
    leaving: float = 0.0
    entering: float = 0.0


@frozen(eq=False)
class _Engine:
    """The copy engine of memories, and the clock of the ticks beside which it copies."""

    memories: tuple[Memory, ...]
    begins: Seconds
    reaches: Mask = field(init=False)
    slower: Mask = field(init=False)

    @reaches.default
    def _pairs(self) -> Mask:
        """Returns, for each memory to copy into, and each to copy from, whether the engine does it."""
        has_engine = np.array([memory.copy_engine for memory in self.memories]) & (len(self.begins) > 0)
        pairs: Mask = has_engine[:, None] & has_engine
        np.fill_diagonal(pairs, val=False)
        return pairs

    @slower.default
    def _order(self) -> Mask:
        """Returns, for the same pairs, whether the memory to copy into is read no faster."""
        speed = np.array([memory.read_bandwidth for memory in self.memories])
        slower: Mask = speed[:, None] <= speed
        return slower

    def seconds(self, nbytes: int) -> Seconds:
        """Returns the seconds of a copy into each memory, from each memory; 0 where it stays."""
        read, write = transfer_seconds(self.memories, column([nbytes, 0]), column([0, nbytes]), column([1, 1]))
        seconds: Seconds = write[:, None] + read
        np.fill_diagonal(seconds, 0.0)
        return seconds

    def costs(self, gap: _Gap) -> Seconds:
        """Returns what a change of memory costs, into each memory, from each memory."""
        seconds = self.seconds(gap.nbytes)
        beside = np.where(self.slower, gap.leaving, gap.entering)
        costs: Seconds = np.where(self.reaches, np.maximum(seconds - beside, HIDDEN * seconds), seconds)
        return costs

    def costs_from(self, gap: _Gap, home: int) -> Seconds:
        """Returns what a change costs of a unit that stays in its home; in its turn a copy is made before a visit."""
        may_copy = self.reaches[:, home] if gap.tick < gap.back else np.ones(len(self.memories), bool)
        costs: Seconds = np.tile(np.where(may_copy, self.costs(gap)[:, home], np.inf)[:, None], len(self.memories))
        costs[home] = 0.0
        np.fill_diagonal(costs, 0.0)
        return costs

    def change(self, gap: _Gap, into: int, source: int) -> Change:
        """Returns the change of memory in a gap."""
        beside = gap.leaving if self.slower[into, source] else gap.entering
        if not self.reaches[into, source]:
            return Change(gap.visit, gap.tick - 1)
        if not beside:
            return Change(gap.visit, gap.tick - 1, gap.tick - 1)
        if self.slower[into, source]:
            return Change(gap.visit, gap.left, gap.tick - 1)
        return Change(gap.visit, gap.tick - 1, gap.back - 1)

    def gaps(self, visit: int, left: int, back: int, leaving: int, coming: int) -> Iterator[_Gap]:
        """Yields the moments between two visits at which the memory can change, in order of ticks.

        An engine has the last moment at which it must begin so that the copy is hidden, and the first at which one that
        began behind the visit is.
        """
        if leaving != coming or leaving == STAYS or not self.reaches.any():
            gaps = (_Gap(visit, left, left + 1, back, leaving), _Gap(visit, left, back, back, coming))
            yield from (gap for gap in gaps if gap.nbytes != STAYS)
            return
        begins, longest = self.begins, float(self.seconds(leaving)[self.reaches].max())
        first, end = float(begins[left + 1]), float(begins[back])
        over = int(np.searchsorted(begins, first + longest))
        late = int(np.searchsorted(begins, end - longest, side="right")) - 1
        for tick in sorted({left + 1, min(over, back), max(late, left + 1), back}):
            beside = float(begins[tick]) - first, end - float(begins[tick])
            yield _Gap(visit, left, tick, back, leaving, *beside)


@frozen(eq=False)
class _Stops:
    """The stops of a unit: runs of ticks with no change of memory in between.

    `profile` has the bytes of the unit in each tick from `begin` on. Stop k has its ticks [first[k], first[k + 1]), and
    costs seconds[k] in each memory. Behind it a copy can be made in gaps[k]. Where the unit stays, `own` has its bytes,
    which lie in its home all the time, and `profile` those of a copy.
    """

    begin: int
    profile: Column
    first: Column
    seconds: Seconds
    gaps: tuple[_Gap, ...]
    own: Column = field(converter=column, default=())

    def staying(self) -> "_Stops":
        """Returns the stops of the unit where it stays, and copies of it have bytes of their own."""
        nbytes = max((gap.nbytes for gap in self.gaps), default=0)
        return evolve(self, profile=np.full(len(self.profile), nbytes), own=self.profile)

    def rent(self, home: int) -> Seconds:
        """Returns what the copies of a unit that stays cost for their room, at each stop in each memory."""
        ticks = np.diff(self.first, append=len(self.profile))
        rent: Seconds = np.repeat(ticks[:, None], self.seconds.shape[1], axis=1) * float(self.seconds[:, home].sum())
        rent[:, home] = 0.0
        return rent * (_RENT / len(self.profile))


@define(eq=False)
class _Routing:
    """`route` has, for each unit, the memory of each of its stops; `load` the bytes in each memory and tick.

    `home` has the memory in which each unit that stays is all the time; NO_HOME for the others. `costs` has what copies
    in gaps cost.
    """

    problem: MemoryProblem
    engine: _Engine
    stops: tuple[_Stops, ...]
    capacities: Column
    route: list[Column]
    home: list[int]
    load: Any
    cost: Seconds
    costs: dict[tuple[float, ...], list[list[float]]] = field(factory=dict)

    @classmethod
    def of(cls, units: Units, visits: Visits, memory: Column, engine: _Engine) -> "_Routing":
        problem = units.problem
        plain = enumerate(_stops_of(units, visits, engine))
        stops = tuple(s.staying() if unit in visits.staying else s for unit, s in plain)
        home = [m if unit in visits.staying else NO_HOME for unit, m in enumerate(memory.tolist())]
        route = [column([m] * len(s.first)) for s, m in zip(stops, memory.tolist(), strict=True)]
        load = np.zeros((len(problem.memories), max(int(problem.chunks.end.max(initial=1)), 1)), np.int64)
        routing = cls(problem, engine, stops, units.capacities, route, home, load, np.zeros(len(stops)))
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
                else:
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
        room = self.capacities[:, None] - self.load[:, stops.begin : stops.begin + len(stops.own)]
        homes = (room >= stops.own).all(axis=1)
        if is_away:
            homes[np.argmin(stops.seconds.sum(axis=0))] = False
        return [way for home in np.flatnonzero(homes).tolist() for way in self._cheapest(stops, home)]

    def _cheapest(self, stops: _Stops, home: int) -> list[_Way]:
        """Returns the cheapest route in the room that is left; none where there is none."""
        seconds = np.where(self._has_room(stops, home), stops.seconds, np.inf)
        if home != NO_HOME:
            seconds += stops.rent(home)
            seconds[0, np.arange(len(self.capacities)) != home] = np.inf
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
        load = self.load[:, stops.begin : stops.begin + len(profile)] + profile
        peak = np.maximum.reduceat(np.where(profile > 0, load, 0), stops.first, axis=1)
        has_room = peak <= self.capacities[:, None]
        if home != NO_HOME:  # copies are written
            has_room &= np.array([[memory.writable] for memory in self.problem.memories])
            has_room[home] = True
        return has_room.T

    def _copies(self, stops: _Stops, k: int, home: int) -> list[list[float]]:
        """Returns what a change of memory behind a stop costs, into each memory, from each; 0 where it stays."""
        gap = stops.gaps[k]
        key = gap.nbytes, gap.leaving, gap.entering, home, gap.tick < gap.back
        if key not in self.costs:
            costs = self.engine.costs(gap) if home == NO_HOME else self.engine.costs_from(gap, home)
            self.costs[key] = costs.tolist()
        return self.costs[key]

    def _seconds(self, unit: int) -> float:
        stops, route = self.stops[unit], self.route[unit]
        seconds = float(stops.seconds[np.arange(len(route)), route].sum())
        for k in np.flatnonzero(np.diff(route)).tolist():
            seconds += self._copies(stops, k, self.home[unit])[int(route[k + 1])][int(route[k])]
        return seconds


def _stops_of(units: Units, visits: Visits, engine: _Engine) -> list[_Stops]:
    """Returns the stops of each unit; a unit with no bytes has one, without ticks."""
    profiles = _profiles(units)
    start = row_starts(visits.unit, len(units)).tolist()
    seconds = transfer_seconds(units.problem.memories, visits.read, visits.written, visits.calls)
    stops = []
    for unit, (begin, profile) in enumerate(profiles):
        rows = range(start[unit], start[unit + 1])
        gaps = [list(engine.gaps(*_between(visits, row))) for row in rows[:-1]]
        can = units.can[unit] | (unit in visits.staying)
        stops.append(_stops(can, seconds[rows.start : rows.stop], (begin, profile), gaps))
    return stops


def _between(visits: Visits, row: int) -> tuple[int, int, int, int, int]:
    """Returns the row of a visit, its tick and that of the next one, and the bytes of copies early and late."""
    columns = visits.tick[row], visits.tick[row + 1], visits.leaving[row], visits.coming[row]
    left, back, leaving, coming = map(int, columns)
    return row, left, back, leaving, coming


def _stops(can: Mask, seconds: Seconds, whole: tuple[int, Column], gaps_of: Sequence[Sequence[_Gap]]) -> _Stops:
    begin, profile = whole
    end = begin + len(profile)
    first, costs, gaps = [begin], [np.zeros(len(can))], list[_Gap]()
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
