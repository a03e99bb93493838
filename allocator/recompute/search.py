"""The cheapest schedule within a budget that is found: walks and segments, each with what can be kept after all."""

from collections.abc import Iterator, Sequence

from attrs import frozen

from allocator.progress import Activity
from allocator.recompute.keeps import keep
from allocator.recompute.segments import drops
from allocator.recompute.sequence import alive, extra_cost, least_bytes
from allocator.recompute.walk import NO_DROP, NO_END, Drop, Manner, walk
from allocator.recompute.work import RecomputeProblem

MANNERS = (Manner(), Manner(0.3), Manner(0.0), Manner(1.0, 0.5), Manner(0.3, 0.5))
MOST_COST = 2
"""The largest cost of what runs again, in costs of all work."""
_HALVINGS = 6
"""How often the range between the bytes that are reached and those that are not is halved."""
_THOROUGH = 2
"""The last halvings, in which everything is tried that `cheapest` tries."""


@frozen(eq=False)
class RecomputeSchedule:
    """Steps in the order in which they run, some several times: most bytes alive, and the cost of what runs again."""

    sequence: Sequence[int]
    peak: int
    cost: int


def measured(work: RecomputeProblem, sequence: Sequence[int]) -> RecomputeSchedule:
    """Returns a sequence with its peak and its extra cost."""
    return RecomputeSchedule(sequence, int(alive(work, sequence).max(initial=0)), extra_cost(work, sequence))


def as_it_is(work: RecomputeProblem) -> RecomputeSchedule:
    """Returns the schedule that runs every step once."""
    return measured(work, range(len(work)))


def cheapest(work: RecomputeProblem, budget: int) -> RecomputeSchedule:
    """Returns the cheapest schedule found within the budget in bytes; the smallest one found where none is."""
    plain = as_it_is(work)
    if plain.peak <= budget:
        return plain
    schedules = [plain, *_reported(_schedules(work, budget))]
    within = [f for f in schedules if f.peak <= budget]
    return min(within, key=lambda f: (f.cost, f.peak)) if within else min(schedules, key=lambda f: (f.peak, f.cost))


def smallest(work: RecomputeProblem) -> RecomputeSchedule:
    """Returns the schedule of fewest bytes that is found."""
    best, low = as_it_is(work), least_bytes(work)
    for left in reversed(range(_HALVINGS)):
        if best.peak <= low:
            break
        aim = (low + best.peak) // 2
        quick = (f for manner in (MANNERS[0], MANNERS[-1]) for f in _within(work, aim, manner, NO_DROP))
        tried = quick if left >= _THOROUGH else [cheapest(work, aim)]
        schedule = min([best, *tried], key=lambda f: (f.peak, f.cost))
        low = low if schedule.peak <= aim else aim + 1
        best = schedule
    return min(best, cheapest(work, best.peak), key=lambda f: (f.peak > best.peak, f.cost))


def _reported(schedules: Iterator[RecomputeSchedule]) -> Iterator[RecomputeSchedule]:
    with Activity("recomputing", unit="schedules") as seen:
        for number, schedule in enumerate(schedules, 1):
            seen.done, seen.best = number, min(schedule.peak, seen.best if number > 1 else schedule.peak)
            yield schedule


def _schedules(work: RecomputeProblem, budget: int) -> Iterator[RecomputeSchedule]:
    for manner in MANNERS:
        yield from _within(work, budget, manner, NO_DROP)
    for drop in drops(work):
        yield from _within(work, NO_END, MANNERS[0], drop, budget)
        yield from _within(work, budget, MANNERS[0], drop)


def _within(
    work: RecomputeProblem, budget: int, manner: Manner, drop: Drop, room: int = NO_END
) -> Iterator[RecomputeSchedule]:
    """Yields the walk with all that can be kept in the budget and the room, or in what it needs anyway."""
    sequence = walk(work, budget, MOST_COST * sum(work.cost), manner, drop)
    if sequence:
        peak = int(alive(work, sequence).max())
        yield measured(work, keep(work, sequence, max(peak, min(budget, room))))
