"""Tensors that change their memory between two uses: copies between memories as calls, where the run then takes less.

Routes are found for the plan without copies (`allocator.memories.routes`), and written as calls
(`engine.lower.copied`), which are planned as all others are. So the time of a plan has that of its copies in it, and it
is kept only where that is less than without them. A copy engine makes copies beside calls: then of their time counts
what calls wait for them (`engine.planning.memories.times`). Such copies are planned besides, and the best plan is kept.
Routes may also drop a tensor, and compute it again where that takes less than to keep it elsewhere.
"""

import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np
from attrs import evolve, frozen

from allocator.memories.changes import STAYS
from allocator.memories.plan import CLOSE
from allocator.memories.problem import Seconds
from allocator.memories.routes import NO_CLOCK, ROUNDS, Visits, find_routes
from allocator.memories.units import Units
from allocator.policies import LEVELS
from allocator.progress import Activity
from engine.lower.calls import Lowered
from engine.lower.copied import Copied, copyable, with_copies
from engine.lower.streamed import streamed
from engine.lower.traffic import accesses
from engine.planning.memories.again import Again
from engine.planning.memories.placed import InMemories, Moved
from engine.planning.memories.times import tick_seconds
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.text.errors import BudgetError, UndecidedError

Plan = Callable[[Lowered, Options], PlacedPlan]
"""Plans calls in their order."""
MOMENTS = 16
"""Ticks of a pause in which a tensor may leave a memory that others need, at most: more make the search longer."""
NOBODY = -1
"""The value that is alone in a unit where none is, or several are."""


def with_moves(plain: PlacedPlan, options: Options, plan: Plan, until: float, *, recompute: bool = True) -> PlacedPlan:
    """Returns the plan with tensors copied between memories where its transfers then take less; else the plain plan.

    They may be computed again, too, unless `recompute` is off.

    Nothing is copied where operators run in levels, or where tensors share no bytes; nor is what rules speak of. It all
    ends at `until`, by time.monotonic(): the plain plan stays where no time is left.
    """
    (memories,) = plain.memories
    if options.parallel == LEVELS or not options.reuse or len(memories.memories) == 1:
        return plain
    moving = Moving(
        plain,
        options,
        plan,
        until,
        Uses.of(plain.lowered, memories, Units.of(memories.problem)),
        plain.transfer_seconds,
    )
    if moving.uses.are_ideal:
        return plain
    with Activity("moving between memories", limit=moving.left):
        best = moving.best_of(plain, moving.uses.visits(again=False))
        visits = moving.uses.visits(again=recompute)
        return moving.best_of(best, visits) if visits.again else best


@frozen(eq=False)
class Moving:
    """The search for copies of the plan `plain` without any, which ends at `until`.

    Transfers take `plain_seconds` without copies; 0 where nothing fits then.
    """

    plain: PlacedPlan
    options: Options
    plan: Plan
    until: float
    uses: "Uses"
    plain_seconds: float

    @property
    def left(self) -> float:
        """Returns the seconds that are left."""
        return max(self.until - time.monotonic(), 0.0)

    def best_of(self, best: PlacedPlan, visits: Visits) -> PlacedPlan:
        """Returns the best plan so far, or one with copies by these visits: in their turn, or beside calls.

        Where something may be computed again, only routes in which something is are tried.
        """
        ways = [self._copies(visits)]
        if sum(memory.copy_engine for memory in self.uses.memories.memories) > 1:
            ways.append([copied if copied.again else evolve(copied, until=copied.after) for copied in ways[0]])
            ways.append(self._copies(visits, _clock(self.plain)))
        for copies in ways:
            if not visits.again or any(copied.again for copied in copies):
                best = self._better(best, copies)
        return best

    def first_that_fits(self, visits: Visits) -> PlacedPlan | None:
        """Returns the plan with copies by these visits, without those that it does not need; None if none fits."""
        fits, copies = None, self._copies(visits, moments=MOMENTS)
        while copies:
            plan = self._planned(copies)
            if plan is None:
                break
            fits, needed = plan, moves_of(plan)
            if len(needed) == len(copies):
                break
            copies = needed
        return fits

    def _copies(self, visits: Visits, clock: Seconds = NO_CLOCK, moments: int = 2) -> list[Copied]:
        return copies_between(self.uses, visits, evolve(self.options, timeout=self.left), clock, moments)

    def _better(self, best: PlacedPlan, copies: Sequence[Copied]) -> PlacedPlan:
        """Returns the plan with the copies, or with some of them, or the best one so far: what takes least time.

        Copies that lie where what they copy lies are left out, and the rest is planned again, until each goes from one
        memory to another.
        """
        while copies:
            plan = self._planned(copies)
            if plan is None:
                break
            needed = moves_of(plan)
            if len(needed) == len(copies):
                return plan if plan.transfer_seconds < best.transfer_seconds * (1 - CLOSE) else best
            copies = needed
        return best

    def _planned(self, copies: Sequence[Copied]) -> PlacedPlan | None:
        if not self.left:
            return None
        lowered, values = with_copies(self.plain.lowered, copies)
        try:
            moved = self.plan(lowered, evolve(self.options, timeout=self.left))
        except (BudgetError, UndecidedError):
            return None
        done = Moved(tuple(copies), values, self.plain_seconds)
        return evolve(moved, options=self.options, orderings=self.plain.orderings, moved=(done,))


def _clock(plain: PlacedPlan) -> Seconds:
    """Returns the seconds at which each tick begins, and at which the last one ends."""
    (memories,) = plain.memories
    begins: Seconds = np.concatenate(([0.0], np.cumsum(tick_seconds(plain.lowered, memories))))
    return begins


def moves_of(plan: PlacedPlan) -> list[Copied]:
    """Returns the copies of a plan that lie in another memory than what they are copies of, or are computed again."""
    (memories,), (moved,) = plan.memories, plan.moved
    row_of, memory = memories.contents.row_of, memories.assigned.memory
    source = {call.outputs[0]: call.inputs[0] for call in plan.lowered.calls if not call.operators}
    pairs = zip(moved.copies, moved.values, strict=True)
    return [copied for copied, copy in pairs if copied.again or memory[row_of[copy]] != memory[row_of[source[copy]]]]


def copies_between(
    uses: "Uses", visits: Visits, options: Options, clock: Seconds = NO_CLOCK, moments: int = 2
) -> list[Copied]:
    """Returns the copies by which tensors of a plan take the cheapest routes through its memories that are found.

    With the `clock` of the plan, a copy engine makes those that it can beside calls. `moments` are those of a pause.
    """
    routes = find_routes(
        uses.units,
        uses.memories.assigned.memory,
        visits,
        seed=options.seed,
        rounds=min(ROUNDS, options.nodes),
        seconds=options.timeout,
        begins=clock,
        moments=moments,
    )
    copies, last, values = list[Copied](), dict[int, int](), uses.lowered.values
    runs = [change for change in routes.changes if change.is_again]
    spans = [(int(visits.tick[c.visit]), c.after, uses.alone(int(visits.unit[c.visit]), c.after)) for c in runs]
    for change in routes.changes:
        unit, after = int(visits.unit[change.visit]), change.after
        if unit in uses.streams:
            if unit in last:
                number = last.pop(unit)
                copies[number] = evolve(copies[number], read_until=after)
            if not change.is_back:
                last[unit] = len(copies)
                constant, _ = uses.streams[unit]
                copies.append(Copied(values[constant].name, after, change.until, len(uses.lowered.instructions)))
            continue
        value = uses.alone(unit, after)
        if change.is_again:
            dropped = {other for left, back, other in spans if left <= after <= back and other != value}
            needed = uses.again.values(value, after + 1, dropped)
            copies.extend(Copied(values[one].name, after, again=True) for one in needed)
            continue
        if value == NOBODY:  # views come and go there, but not right behind the visit
            after = int(visits.tick[change.visit])
            value = uses.alone(unit, after)
        copies.append(Copied(values[value].name, after, change.until))
    return copies


@frozen(eq=False)
class _Ticks:
    """Ticks of values in ascending order, and the sums of the values before each of them, and of all."""

    ticks: Sequence[int]
    sums: Sequence[int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "_Ticks":
        ticks, values = zip(*sorted(pairs), strict=True)
        return cls(ticks, tuple(accumulate(values, initial=0)))

    def up_to(self, tick: int) -> tuple[int, int]:
        """Returns how many values have their tick up to one, and their sum."""
        count = bisect_right(self.ticks, tick)
        return count, self.sums[count]


@frozen(eq=False)
class Uses:
    """When the values of units are there: from the tick that writes them to the one that uses them last.

    `written` and `used` have, for each unit, these ticks of its values in ascending order, each with the sum of the
    values up to it: where one value is there, it is the difference of two sums. `streams` has, for each unit that is a
    constant of which copies can be made, its value and the bytes of a copy. `again` knows what can be computed again.
    """

    lowered: Lowered
    memories: InMemories
    units: Units
    written: dict[int, _Ticks]
    used: dict[int, _Ticks]
    streams: dict[int, tuple[int, int]]
    again: Again

    @classmethod
    def of(cls, lowered: Lowered, memories: InMemories, units: Units) -> "Uses":
        """Returns the uses of calls that lie in memories."""
        contents = memories.contents
        first = dict.fromkeys((*lowered.inputs.values(), *lowered.parameters), 0)
        last = dict[int, int]()
        for instruction in lowered.instructions:
            first |= dict.fromkeys(instruction.outputs, instruction.tick)
            last |= dict.fromkeys(instruction.inputs, instruction.tick)
        fetch = len(lowered.instructions) + 1
        last |= dict.fromkeys((*lowered.outputs.values(), *lowered.parameters.values()), fetch)
        values_of: dict[int, list[int]] = defaultdict(list)
        for value, row in contents.row_of.items():
            if value in first and first[value] < last.get(value, 0) and row < contents.chunks:
                values_of[int(units.unit_of[row])].append(value)
        written = {unit: _Ticks.of((first[v], v) for v in values) for unit, values in values_of.items()}
        used = {unit: _Ticks.of((last[v], v) for v in values) for unit, values in values_of.items()}
        rows, values_in = contents.row_of, Counter(contents.row_of.values())
        streams = {
            int(units.unit_of[rows[value]]): (value, stream.spec.nbytes)
            for value, stream in streamed(lowered).items()
            if values_in[rows[value]] == 1
        }
        there = {value: (first[value], tick) for value, tick in last.items() if value in first}
        return cls(lowered, memories, units, written, used, streams, Again.of(lowered, memories, there))

    @property
    def are_ideal(self) -> bool:
        """Returns whether each chunk and each constant lies where it costs least, and a copy of it, too."""
        least = self.units.seconds.min(axis=1)
        for unit in self.streams:
            least[unit] = self.units.problem.seconds[self.units.ids[unit]].min()
        return self.memories.assigned.cost <= float(least.sum()) * (1 + CLOSE)

    def alone(self, unit: int, tick: int) -> int:
        """Returns the value of a unit that is written up to a tick and used behind it; NOBODY for none or several."""
        if unit not in self.written:
            return NOBODY
        (came, total), (went, gone) = self.written[unit].up_to(tick), self.used[unit].up_to(tick)
        return total - gone if came - went == 1 else NOBODY

    def visits(self, *, again: bool) -> Visits:
        """Returns the visits of units, and where a copy can be made of all that a unit then has.

        With `again`, also between which visits a unit may be dropped, as it can be computed again.
        """
        rows, can_be = list(self._rows()), copyable(self.lowered)
        chunks = range(self.memories.contents.chunks)
        ruled = {int(self.units.unit_of[chunk]) for chunk in chunks if self.memories.is_ruled(chunk)}

        def nbytes(unit: int, tick: int) -> int:
            if unit in self.streams:
                return self.streams[unit][1]
            value = NOBODY if unit in ruled else self.alone(unit, tick)
            return self.lowered.values[value].spec.nbytes if value in can_be else STAYS

        leaving, coming, computed = list[int](), list[int](), dict[int, tuple[float, ...]]()
        for row, ((unit, tick, *_), (following, then, *_)) in enumerate(zip(rows, [*rows[1:], (-1, 0)], strict=True)):
            is_last = unit != following
            leaving.append(STAYS if is_last else nbytes(unit, tick))
            coming.append(STAYS if is_last else nbytes(unit, then - 1))
            if again and leaving[-1] != STAYS != coming[-1]:
                seconds = self._again(unit, tick, then)
                computed |= {row: seconds} if seconds else {}
        unit_of, ticks, read, written, calls = zip(*rows, strict=True)
        staying = frozenset(self.streams)
        return Visits(unit_of, ticks, read, written, calls, leaving, coming, staying=staying, again=computed)

    def _again(self, unit: int, tick: int, then: int) -> tuple[float, ...]:
        """Returns the seconds of computing a unit again, in each memory, for its visit behind that in a tick.

        Nothing where that cannot be, or takes longer than all transfers of the unit in some memory.
        """
        value = self.alone(unit, tick)
        if value == NOBODY or then == tick + 1 or value != self.alone(unit, then - 1):
            return ()
        values = self.again.values(value, then)
        seconds = self.again.seconds(values) if values else ()
        slowest = float(self.units.seconds[unit].max(where=self.units.can[unit], initial=0.0))
        return seconds if values and min(seconds) < slowest else ()

    def _rows(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yields the unit, the tick, the bytes read, the bytes written and the chunks touched of each visit."""
        row_of, unit_of = self.memories.contents.row_of, self.units.unit_of
        visits: dict[tuple[int, int], Any] = defaultdict(lambda: np.zeros(3, np.int64))
        for access in accesses(self.lowered):
            for row, (read, written) in access.by_row(row_of).items():
                visits[int(unit_of[row]), access.tick] += (read, written, 1)
        for unit, tick in product(self.streams, (0, len(self.lowered.instructions) + 1)):
            visits[unit, tick] += 0
        for unit, tick in sorted(visits):
            read, written, chunks = visits[unit, tick].tolist()
            yield unit, tick, read, written, chunks
