"""Shared objects by the book, for tests: each rule read aloud, pair by pair. Too simple to be wrong, and slow."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from attrs import define, frozen

from allocator.problem import Problem

NOT_YET = 10**9


@frozen
class Unit:
    """A chain of overwrites as a whole: it lives in [begin, end)."""

    chunks: tuple[int, ...]
    begin: int
    end: int
    size: int
    alignment: int

    def gap(self, other: "Unit") -> int:
        """Ticks between the two; negative where they meet."""
        return max(self.begin - other.end, other.begin - self.end)


@define(eq=False)
class Holder:
    """An object and who is in it."""

    units: list[Unit]

    @property
    def size(self) -> int:
        return max(t.size for t in self.units)

    def gap(self, unit: Unit) -> int:
        """The smallest gap to anybody in it; negative where the object is busy."""
        return min(t.gap(unit) for t in self.units)


def units_of(problem: Problem) -> list[Unit]:
    """All chains that have bytes, by begin, end, size (largest first) and alignment."""
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
"""Which of the free objects, newest first, a unit takes."""


def in_turn(units: Sequence[Unit], choice: Choice) -> list[Holder]:
    """Each unit takes a free object, or else a new one."""
    holders: list[Holder] = []
    for unit in units:
        free = [h for h in reversed(holders) if h.gap(unit) >= 0]
        holder = choice(unit, free)
        if holder is None:
            holders.append(Holder([unit]))
        else:
            holder.units.append(unit)
    return holders


def nearest(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """The object that is nearest in size; rather one that need not grow."""
    return min(free, key=lambda h: (abs(h.size - unit.size), h.size < unit.size), default=None)


def equal(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """An object of just that size."""
    return next((h for h in free if h.size == unit.size), None)


def smallest(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """The smallest object that need not grow."""
    return min((h for h in free if h.size >= unit.size), key=lambda h: h.size, default=None)


def smallest_or_grown(unit: Unit, free: Sequence[Holder]) -> Holder | None:
    """The smallest object that need not grow, else the largest."""
    return smallest(unit, free) or max(free, key=lambda h: h.size, default=None)


def by_size(units: Sequence[Unit]) -> list[Unit]:
    return sorted(units, key=lambda t: -t.size)


def by_breadth(units: Sequence[Unit]) -> list[Unit]:
    """Tick by tick, broadest first; in each the largest units first."""

    def alive(tick: int) -> list[Unit]:
        return [t for t in units if t.begin <= tick < t.end]

    last = max((t.end for t in units), default=0)
    ticks = sorted(range(last), key=lambda tick: -sum(t.size for t in alive(tick)))
    return list(dict.fromkeys(t for tick in ticks for t in by_size(alive(tick))))


def positional_maximums(units: Sequence[Unit]) -> list[int]:
    """The k-th is the largest k-th largest size in any tick."""
    last = max((t.end for t in units), default=0)
    profiles = [sorted((t.size for t in units if t.begin <= tick < t.end), reverse=True) for tick in range(last)]
    return [max(p[k] for p in profiles if k < len(p)) for k in range(max(map(len, profiles), default=0))]


def by_size_improved(units: Sequence[Unit]) -> list[Holder]:
    """Of the first stage that has units left, whoever has the smallest gap goes where it has it."""
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
    """All sets of objects in which nobody meets anybody; each lists its units by begin."""
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
    """What a flow pays for an object: its first unit, and what each other is larger by than the one before."""
    growth = (max(b.size - a.size, 0) for a, b in pairwise(holder))
    return holder[0].size + sum(growth)
