"""Tensors that change their memory between two uses: copies between memories as calls, where the run then takes less.

Routes are found for the plan without copies (`allocator.memories.routes`), and written as calls
(`engine.lower.copied`), which are planned as all others are. So the time of a plan has that of its copies in it, and it
is kept only where that is less than without them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from allocator.memories.plan import CLOSE
from allocator.memories.routes import ROUNDS, STAYS, Visits, find_routes
from allocator.memories.units import Units
from allocator.progress import Activity
from engine.lower.calls import Join, Lowered
from engine.lower.copied import Copied, copyable, with_copies
from engine.lower.traffic import accesses
from engine.planning.memories.placed import Contents, InMemories, Moved
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.text.errors import BudgetError, UndecidedError

Plan = Callable[[Lowered, Options], PlacedPlan]
"""Plans calls in their order."""


def with_moves(plain: PlacedPlan, options: Options, plan: Plan) -> PlacedPlan:
    """Returns the plan with tensors copied between memories where its transfers then take less; else the plain plan.

    Nothing is copied where operators run at once, or where tensors share no bytes; nor is what rules speak of.
    """
    (memories,) = plain.memories
    units = Units.of(memories.problem)
    if options.parallel or not options.reuse or len(memories.memories) == 1 or _is_ideal(memories, units):
        return plain
    until = time.monotonic() + options.timeout

    def planned(copies: Sequence[Copied]) -> PlacedPlan | None:
        lowered, values = with_copies(plain.lowered, copies)
        try:
            moved = plan(lowered, evolve(options, timeout=max(until - time.monotonic(), 0.0)))
        except (BudgetError, UndecidedError):
            return None
        done = Moved(tuple(copies), values, _seconds(plain))
        return evolve(moved, options=options, orderings=plain.orderings, moved=(done,))

    with Activity("moving between memories", limit=options.timeout):
        return _best(plain, copies_between(plain, units, options), planned)


def _best(
    plain: PlacedPlan, copies: Sequence[Copied], planned: Callable[[Sequence[Copied]], PlacedPlan | None]
) -> PlacedPlan:
    """Returns the best plan with the copies, then with those alone that go from one memory to another in that plan."""
    best = plain
    while copies:
        plan = planned(copies)
        if plan is None:
            break
        if _seconds(plan) < _seconds(best) * (1 - CLOSE):
            best = plan
        needed = moves_of(plan)
        if len(needed) == len(copies):
            break
        copies = needed
    return best


def moves_of(plan: PlacedPlan) -> list[Copied]:
    """Returns the copies of a plan that lie in another memory than what they are copies of."""
    (memories,), (moved,) = plan.memories, plan.moved
    row_of, memory = memories.contents.row_of, memories.assigned.memory
    source = {call.outputs[0]: call.inputs[0] for call in plan.lowered.calls if not call.operators}
    pairs = zip(moved.copies, moved.values, strict=True)
    return [copied for copied, copy in pairs if memory[row_of[copy]] != memory[row_of[source[copy]]]]


def _seconds(plan: PlacedPlan) -> float:
    return sum(memories.assigned.cost for memories in plan.memories)


def _is_ideal(memories: InMemories, units: Units) -> bool:
    """Returns whether each chunk and each constant lies where it costs least."""
    return memories.assigned.cost <= float(units.seconds.min(axis=1).sum()) * (1 + CLOSE)


def copies_between(plain: PlacedPlan, units: Units, options: Options) -> list[Copied]:
    """Returns the copies by which tensors of a plan take the cheapest routes through its memories that are found."""
    (memories,) = plain.memories
    uses = _Uses.of(plain.lowered, memories.contents, units)
    visits = uses.visits()
    routes = find_routes(
        units,
        memories.assigned.memory,
        visits,
        seed=options.seed,
        rounds=min(ROUNDS, options.nodes),
        seconds=options.timeout,
    )
    copies = []
    for change in routes.changes:
        unit = int(visits.unit[change.visit])
        after = int(visits.tick[change.visit + 1]) - 1 if change.is_late else int(visits.tick[change.visit])
        (value,) = uses.there(unit, after)
        copies.append(Copied(plain.lowered.values[value].name, after))
    return copies


@frozen(eq=False)
class _Uses:
    """When the values of a program are there: value v is written in tick first[v], and used last in tick last[v].

    `values_of` has the values of each unit. `parts` are those that must stay inside another value.
    """

    lowered: Lowered
    contents: Contents
    units: Units
    first: dict[int, int]
    last: dict[int, int]
    values_of: dict[int, list[int]]
    parts: frozenset[int]

    @classmethod
    def of(cls, lowered: Lowered, contents: Contents, units: Units) -> "_Uses":
        first = dict.fromkeys((*lowered.inputs.values(), *lowered.parameters), 0)
        last, parts = dict[int, int](), set[int]()
        for instruction in lowered.instructions:
            first |= dict.fromkeys(instruction.outputs, instruction.tick)
            last |= dict.fromkeys(instruction.inputs, instruction.tick)
            parts.update(instruction.inputs if isinstance(instruction, Join) else ())
        fetch = len(lowered.instructions) + 1
        last |= dict.fromkeys((*lowered.outputs.values(), *lowered.parameters.values()), fetch)
        values_of: dict[int, list[int]] = defaultdict(list)
        for value, row in contents.row_of.items():
            if value in first and row < contents.chunks:
                values_of[int(units.unit_of[row])].append(value)
        return cls(lowered, contents, units, first, last, values_of, frozenset(parts))

    def there(self, unit: int, tick: int) -> list[int]:
        """Returns the values of a unit that are written up to a tick, and used behind it."""
        return [v for v in self.values_of[unit] if self.first[v] <= tick < self.last.get(v, 0)]

    def visits(self) -> Visits:
        """Returns the visits of units, and where a copy can be made of all that a unit then has."""
        rows, can_be = list(self._rows()), copyable(self.lowered) - self.parts
        writable = [memory.writable for memory in self.units.problem.memories]
        is_ruled = (self.contents.allowed[: self.contents.chunks] != writable).any(axis=1)
        ruled = set(self.units.unit_of[np.flatnonzero(is_ruled)].tolist())

        def nbytes(unit: int, tick: int) -> int:
            there = self.there(unit, tick)
            is_copied = unit not in ruled and len(there) == 1 and there[0] in can_be
            return self.lowered.values[there[0]].spec.nbytes if is_copied else STAYS

        leaving, coming = [], []
        for (unit, tick, *_), (following, then, *_) in zip(rows, [*rows[1:], (-1, 0)], strict=True):
            is_last = unit != following
            leaving.append(STAYS if is_last else nbytes(unit, tick))
            coming.append(STAYS if is_last else nbytes(unit, then - 1))
        unit_of, ticks, read, written, calls = zip(*rows, strict=True)
        return Visits(unit_of, ticks, read, written, calls, leaving, coming)

    def _rows(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yields the unit, the tick, the bytes read, the bytes written and the chunks touched of each visit."""
        row_of, unit_of = self.contents.row_of, self.units.unit_of
        visits: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        touched: dict[tuple[int, int], set[int]] = defaultdict(set)
        for access in accesses(self.lowered):
            for kind, pairs in enumerate((access.read, access.written)):
                for value, nbytes in pairs:
                    if value in row_of:
                        key = int(unit_of[row_of[value]]), access.tick
                        visits[key][kind] += nbytes
                        touched[key].add(row_of[value])
        for unit, tick in sorted(visits):
            read, written = visits[unit, tick]
            yield unit, tick, read, written, len(touched[unit, tick])
