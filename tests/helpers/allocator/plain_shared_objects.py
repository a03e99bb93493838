"""Shared objects for tests: each rule as published, pair by pair. Too simple to be wrong, and slow."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from attrs import define, frozen

from allocator.problem import Problem

NOT_YET = 10**9


@frozen
class Unit:
    """A chain of overwrites as a whole, which lives in [begin, end)."""

    chunks: tuple[int, ...]
    begin: int
    end: int
    size: int
    alignment: int

    def gap(self, other: "Unit") -> int:
        """Returns the ticks between the two; negative where they overlap."""
        return max(self.begin - other.end, other.begin - self.end)


@define(eq=False)
class Holder:
    """An object and its units."""

    units: list[Unit]

    @property
    def size(self) -> int:
        return max(t.size for t in self.units)

    def gap(self, unit: Unit) -> int:
        """Returns the smallest gap to a unit in it; negative where the object is busy."""
        return min(t.gap(unit) for t in self.units)


def units_of(problem: Problem) -> list[Unit]:
    """Returns all chains that have bytes, by begin, end, size (largest first) and alignment."""
    taken = dict(zip(problem.src.tolist(), problem.dest.tolist(), strict=True))
    chains: dict[int, list[int]] = {}
    for chunk in range(len(problem)):
        root = chunk
        while root in taken:
            root = taken[root]
        if problem.size[chunk]:
            chains.setdefault(root, []).append(chunk)
    built = [
        Unit(
            tuple(chunks),
            int(problem.begin[root]),
            int(problem.end[chunks].max()),
            int(problem.size[root]),
            int(problem.alignment[root]),
        )
        for root, chunks in chains.items()
    ]
    return sorted(built, key=lambda t: (t.begin, t.end, -t.size, t.alignment))


Choice = Callable[[Unit, Sequence[Holder]], Holder | None]
"""Which of the free objects, oldest first, a unit takes."""


def in_turn(units: Sequence[Unit], choice: Choice) -> list[Holder]:
    """Assigns to each unit a free object, or else a new one."""
    holders: list[Holder] = []
    for unit in units:
        free = [h for h in holders if h.gap(unit) >= 0]
        holder = choice(unit, free)
        if holder is None:
            holders.append(Holder([unit]))
        else:
            holder.units.append(unit)
    return holders


def nearest(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """Returns the object nearest in size; of two, one that need not grow."""
    return min(free, key=lambda h: (abs(h.size - unit.size), h.size < unit.size), default=None)


def equal(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """Returns the object of just that size."""
    return next((h for h in free if h.size == unit.size), None)


def smallest(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """Returns the smallest object that need not grow."""
    return min((h for h in free if h.size >= unit.size), key=lambda h: h.size, default=None)


def smallest_or_grown(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """Returns the smallest object that need not grow, else the largest."""
    return smallest(unit, free) or max(free, key=lambda h: h.size, default=None)


def by_size(units: Sequence[Unit]) -> list[Unit]:
    return sorted(units, key=lambda t: -t.size)


def by_breadth(units: Sequence[Unit]) -> list[Unit]:
    """Assigns tick by tick, broadest first; in each the largest units first, then the first and longest-lived."""

    def alive(tick: int) -> list[Unit]:
        return [t for t in units if t.begin <= tick < t.end]

    last = max((t.end for t in units), default=0)
    ticks = sorted(range(last), key=lambda tick: -sum(t.size for t in alive(tick)))
    return list(
        dict.fromkeys(t for tick in ticks for t in by_size(sorted(alive(tick), key=lambda t: (t.begin, -t.end))))
    )


def positional_maximums(units: Sequence[Unit]) -> list[int]:
    """Returns the positional maximums: the k-th is the largest k-th largest size in any tick."""
    last = max((t.end for t in units), default=0)
    profiles = [sorted((t.size for t in units if t.begin <= tick < t.end), reverse=True) for tick in range(last)]
    return [max(p[k] for p in profiles if k < len(p)) for k in range(max(map(len, profiles), default=0))]


def by_size_improved(units: Sequence[Unit]) -> list[Holder]:
    """Assigns the unit with the smallest gap in the first stage that has units left to the object of that gap."""
    maximums = positional_maximums(units)
    holders: list[Holder] = []
    left = list(units)
    while left:
        stages = [sum(m >= t.size for m in maximums) for t in left]
        waiting = [t for t, stage in zip(left, stages, strict=True) if stage == min(stages)]
        gaps = [min((h.gap(t) for h in holders if h.gap(t) >= 0), default=NOT_YET) for t in waiting]
        gap, _, k = min((gap, -t.size, k) for k, (gap, t) in enumerate(zip(gaps, waiting, strict=True)))
        if gap == NOT_YET:
            holders.append(Holder([waiting[k]]))
        else:
            next(h for h in holders if h.gap(waiting[k]) == gap).units.append(waiting[k])
        left = [t for t in left if t is not waiting[k]]
    return holders


def all_ways(units: Sequence[Unit]) -> Iterator[list[list[Unit]]]:
    """Yields all sets of objects without conflicts; each lists its units by begin."""
    if not units:
        yield []
        return
    *before, last = units
    for way in all_ways(before):
        yield [*way, [last]]
        for k, holder in enumerate(way):
            if min(t.gap(last) for t in holder) >= 0:
                yield [*way[:k], [*holder, last], *way[k + 1 :]]


def flow_cost(holder: Sequence[Unit]) -> int:
    """Returns the cost of an object in a flow: its first unit, and the growth of each other over the one before."""
    growth = (max(b.size - a.size, 0) for a, b in pairwise(holder))
    return holder[0].size + sum(growth)
