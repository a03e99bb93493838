"""How many calls of a plan can run at once, and how long a run on several threads should take."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush

import numpy as np
from attrs import frozen

from allocator.concurrency import Dependences, heaviest_paths
from allocator.problem import Column, column
from engine.executor.agenda import Agenda, make_agenda
from engine.lower.costs import COSTS_A_SECOND, call_cost
from engine.lower.schedule import BARRIER
from engine.planning import memories as in_memories
from engine.planning.placed import PlacedPlan
from engine.system.timing import Timing


@frozen
class Parallelism:
    """Calls and estimated cost of a whole plan and of its critical path, which no number of threads makes shorter."""

    calls: int
    critical_calls: int
    cost: int
    critical_cost: int

    @property
    def by_count(self) -> float:
        """The average number of calls that can run at once, if all took the same time."""
        return self.calls / max(self.critical_calls, 1)

    @property
    def by_cost(self) -> float:
        """The average number of calls that can run at once, if each took the time of its estimated cost."""
        return self.cost / max(self.critical_cost, 1)


def parallelism(plan: PlacedPlan) -> Parallelism:
    """Returns the parallelism that the schedule of a plan allows."""
    runs = (plan.schedule.tick != BARRIER).astype(np.int64)
    cost = _costs(plan)
    waits = Dependences(len(plan.schedule), plan.schedule.before, plan.schedule.after)
    critical = [int(heaviest_paths(waits, weight)[0].max(initial=0)) for weight in (runs, cost)]
    return Parallelism(int(runs.sum()), critical[0], int(cost.sum()), critical[1])


def predicted_seconds(plan: PlacedPlan, timings: Sequence[Timing], threads: int) -> float:
    """Returns the seconds that a plan takes on `threads` threads, if each call takes the time of its timing."""
    taken = {timing.tick: timing.end - timing.begin for timing in timings}
    return max((timing.end for timing in _scheduled(plan, taken, threads)), default=0.0)


def estimated_timings(plan: PlacedPlan, threads: int) -> tuple[Timing, ...]:
    """Returns when calls would run on `threads` threads, by their estimated costs and COSTS_A_SECOND.

    Where a copy engine makes copies beside calls that run one after the other, thread 1 makes them, and times are those
    of transfers and operations.
    """
    if plan.lowered.engine_copies and not plan.schedule.policy:
        (placed,) = plan.memories
        times = in_memories.call_times(plan.lowered, plan.schedule, placed)
        timings = (Timing(time.tick, int(time.is_beside), time.begin, time.end) for time in times)
        return tuple(sorted(timings, key=lambda timing: (timing.begin, timing.tick)))
    taken = {call.tick: call_cost(call) / COSTS_A_SECOND for call in plan.lowered.calls}
    return tuple(sorted(_scheduled(plan, taken, threads), key=lambda timing: (timing.begin, timing.tick)))


def _scheduled(plan: PlacedPlan, taken: Mapping[int, float], threads: int) -> list[Timing]:
    """Simulates list scheduling in the order of the executor; threads start in no time. `taken` is seconds by tick."""
    agenda = make_agenda(_costs(plan).tolist(), plan.schedule.before, plan.schedule.after)
    ticks = [int(plan.schedule.tick[node]) for node in agenda.nodes]
    return [t for t in _by_list(agenda, ticks, {BARRIER: 0.0, **taken}, threads) if t.tick != BARRIER]


def _costs(plan: PlacedPlan) -> Column:
    """Returns the estimated cost of each node of the schedule."""
    by_tick = {call.tick: call_cost(call) for call in plan.lowered.calls} | {BARRIER: 0}
    return column([by_tick[tick] for tick in plan.schedule.tick.tolist()])


def _by_list(agenda: Agenda, ticks: Sequence[int], taken: Mapping[int, float], threads: int) -> Iterator[Timing]:
    """Yields timings by their begin; the idle thread of the lowest number takes the next node. `ticks` by rank."""
    ready, waits, running = list(agenda.first), list(agenda.waits), list[tuple[float, int, int]]()
    now, idle = 0.0, list(range(threads))
    while ready or running:
        while ready and idle:
            rank, thread = heappop(ready), heappop(idle)
            timing = Timing(ticks[rank], thread, now, now + taken[ticks[rank]])
            heappush(running, (timing.end, rank, thread))
            yield timing
        now, done, thread = heappop(running)
        heappush(idle, thread)
        for rank in agenda.followers[done]:
            waits[rank] -= 1
            if not waits[rank]:
                heappush(ready, rank)
