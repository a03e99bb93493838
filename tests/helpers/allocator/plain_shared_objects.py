"""Shared objects by the book, for tests: each rule read aloud, pair by pair. Too simple to be wrong, and slow."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from attrs import define, frozen

from allocator.problem import Problem

NOT_YET = 10**9


@frozen
class Tenant:
    """A chain of overwrites as a whole: it lives in [begin, end)."""

    chunks: tuple[int, ...]
    begin: int
    end: int
    size: int
    alignment: int

    def gap(self, other: "Tenant") -> int:
        """Ticks between the two; negative where they meet."""
        return max(self.begin - other.end, other.begin - self.end)


@define(eq=False)
class Holder:
    """An object and who is in it."""

    tenants: list[Tenant]

    @property
    def size(self) -> int:
        return max(t.size for t in self.tenants)

    def gap(self, tenant: Tenant) -> int:
        """The smallest gap to anybody in it; negative where the object is busy."""
        return min(t.gap(tenant) for t in self.tenants)


def tenants_of(problem: Problem) -> list[Tenant]:
    """All chains that have bytes, by begin, end, size (largest first) and alignment."""
    taken = dict(zip(problem.src.tolist(), problem.dest.tolist(), strict=True))
    chains: dict[int, list[int]] = {}
    for chunk in range(len(problem)):
        root = chunk
        while root in taken:
            root = taken[root]
        if problem.size[chunk]:
            chains.setdefault(root, []).append(chunk)
    made = [
        Tenant(
            tuple(chunks),
            int(problem.begin[root]),
            int(problem.end[chunks].max()),
            int(problem.size[root]),
            int(problem.alignment[root]),
        )
        for root, chunks in chains.items()
    ]
    return sorted(made, key=lambda t: (t.begin, t.end, -t.size, t.alignment))


Choice = Callable[[Tenant, Sequence[Holder]], Holder | None]
"""Which of the free objects, newest first, a tenant takes."""


def in_turn(tenants: Sequence[Tenant], choice: Choice) -> list[Holder]:
    """Each tenant takes a free object, or else a new one."""
    holders: list[Holder] = []
    for tenant in tenants:
        free = [h for h in reversed(holders) if h.gap(tenant) >= 0]
        found = choice(tenant, free)
        if found is None:
            holders.append(Holder([tenant]))
        else:
            found.tenants.append(tenant)
    return holders


def nearest(tenant: Tenant, free: Sequence[Holder]) -> Holder | None:
    """The object that is nearest in size; rather one that need not grow."""
    return min(free, key=lambda h: (abs(h.size - tenant.size), h.size < tenant.size), default=None)


def equal(tenant: Tenant, free: Sequence[Holder]) -> Holder | None:
    """An object of just that size."""
    return next((h for h in free if h.size == tenant.size), None)


def smallest(tenant: Tenant, free: Sequence[Holder]) -> Holder | None:
    """The smallest object that need not grow."""
    return min((h for h in free if h.size >= tenant.size), key=lambda h: h.size, default=None)


def smallest_or_grown(tenant: Tenant, free: Sequence[Holder]) -> Holder | None:
    """The smallest object that need not grow, else the largest."""
    return smallest(tenant, free) or max(free, key=lambda h: h.size, default=None)


def by_size(tenants: Sequence[Tenant]) -> list[Tenant]:
    return sorted(tenants, key=lambda t: -t.size)


def by_breadth(tenants: Sequence[Tenant]) -> list[Tenant]:
    """Tick by tick, broadest first; in each the largest tenants first."""

    def alive(tick: int) -> list[Tenant]:
        return [t for t in tenants if t.begin <= tick < t.end]

    last = max((t.end for t in tenants), default=0)
    ticks = sorted(range(last), key=lambda tick: -sum(t.size for t in alive(tick)))
    return list(dict.fromkeys(t for tick in ticks for t in by_size(alive(tick))))


def positional_maximums(tenants: Sequence[Tenant]) -> list[int]:
    """The k-th is the largest k-th largest size in any tick."""
    last = max((t.end for t in tenants), default=0)
    profiles = [sorted((t.size for t in tenants if t.begin <= tick < t.end), reverse=True) for tick in range(last)]
    return [max(p[k] for p in profiles if k < len(p)) for k in range(max(map(len, profiles), default=0))]


def by_size_improved(tenants: Sequence[Tenant]) -> list[Holder]:
    """Of the first stage that has tenants left, whoever has the smallest gap goes where it has it."""
    maximums = positional_maximums(tenants)
    holders: list[Holder] = []
    left = list(tenants)
    while left:
        stages = [sum(m >= t.size for m in maximums) for t in left]
        waiting = [t for t, stage in zip(left, stages, strict=True) if stage == min(stages)]
        gaps = [min((h.gap(t) for h in holders if h.gap(t) >= 0), default=NOT_YET) for t in waiting]
        gap, _, k = min((gap, -t.size, k) for k, (gap, t) in enumerate(zip(gaps, waiting, strict=True)))
        if gap == NOT_YET:
            holders.append(Holder([waiting[k]]))
        else:
            next(h for h in holders if h.gap(waiting[k]) == gap).tenants.append(waiting[k])
        left = [t for t in left if t is not waiting[k]]
    return holders


def all_ways(tenants: Sequence[Tenant]) -> Iterator[list[list[Tenant]]]:
    """All sets of objects in which nobody meets anybody; each lists its tenants by begin."""
    if not tenants:
        yield []
        return
    *before, last = tenants
    for way in all_ways(before):
        yield [*way, [last]]
        for k, holder in enumerate(way):
            if min(t.gap(last) for t in holder) >= 0:
                yield [*way[:k], [*holder, last], *way[k + 1 :]]


def flow_cost(holder: Sequence[Tenant]) -> int:
    """What a flow pays for an object: its first tenant, and what each other is larger by than the one before."""
    growth = (max(b.size - a.size, 0) for a, b in pairwise(holder))
    return holder[0].size + sum(growth)
