"""Who needs the arena: what is alive at the peak, or may be alive at once."""

import numpy as np
from attrs import evolve, frozen

from allocator import bounds
from allocator.concurrency import happens_before
from allocator.derive.users import Users, users
from allocator.errors import TooManyError
from allocator.policies.exact import conflicts
from allocator.problem import Column, Problem, column
from engine.lower.calls import Value
from engine.lower.schedule import BARRIER, Schedule, nodes_between_ends
from engine.planning.placed import PlacedPlan

_MOST_NODES = 5_000
"""Of schedules for which it is worked out, in some tenths of a second, which chunks may be alive at once."""


@frozen(eq=False)
class PeakTensor:
    """A chunk that is alive at the peak, and the operator that made it, with the name of its schema as `kind`.

    `share` is its part of the live bytes; the lifetime in ticks is half-open.
    """

    name: str
    operator: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    bytes: int
    share: float
    begin: int
    end: int
    offset: int


def peak_of(plan: PlacedPlan) -> tuple[int, tuple[PeakTensor, ...]]:
    """The tick of the peak and the tensors that are alive in it, largest first."""
    tick, chunks = peak_chunks(plan)
    total = max(int(plan.problem.size[chunks].sum()), 1)
    owners, makers = plan.owners(plan.chunks), plan.lowered.makers
    return tick, tuple(_peak_tensor(plan, owners[c], c, makers.get(owners[c].id, 0), total) for c in chunks.tolist())


def peak_chunks(plan: PlacedPlan) -> tuple[int, Column]:
    """The tick of the peak and the chunks that are alive in it, largest first.

    Where operators run at once there is no such tick: the heaviest chunks that is found of which each two may be alive
    at once, and the tick in which the last of them is written. In long schedules, the peak of one call after the other.
    """
    if plan.schedule.policy and len(plan.schedule) <= _MOST_NODES:
        chunks = _at_once(plan)
        tick = int(plan.chunks.begin[chunks].max(initial=0))
    else:
        tick = bounds.peak_tick(plan.problem)
        chunks = _alive(plan.problem, tick)
    by_size = np.lexsort((plan.plan.offset[chunks], -plan.problem.size[chunks]))
    return tick, column(chunks[by_size])


def _alive(problem: Problem, tick: int) -> Column:
    """In one tick; what is just being overwritten counts, its overwriter does not yet."""
    lives = (problem.begin <= tick) & (tick < problem.end) & (problem.size > 0)
    lives[problem.src[problem.begin[problem.src] == tick]] = False
    return np.flatnonzero(lives)


def _at_once(plan: PlacedPlan) -> Column:
    """By what waits for what in the plan's schedule, whatever policy made it."""
    node_of = _node_of(plan.schedule, len(plan.lowered.stages) + 2)
    found, waits = users(plan.program), nodes_between_ends(plan.schedule)
    try:
        meet = conflicts(plan.problem, Users(found.start, node_of[found.tick]), happens_before(waits))
    except TooManyError:
        return _alive(plan.problem, bounds.peak_tick(plan.problem))
    return bounds.heaviest(evolve(plan.problem, conflicts=meet))


def _node_of(schedule: Schedule, ticks: int) -> Column:
    """Of each tick, with the feed as node 0 and the fetch as the last; aliases have none, and 0 stands there."""
    nodes = np.zeros(ticks, np.int64)
    nodes[schedule.tick[schedule.tick != BARRIER]] = np.flatnonzero(schedule.tick != BARRIER) + 1
    nodes[-1] = len(schedule) + 1
    return nodes


def _peak_tensor(plan: PlacedPlan, value: Value, chunk: int, maker: int, total: int) -> PeakTensor:
    problem, size = plan.problem, int(plan.problem.size[chunk])
    return PeakTensor(
        name=value.name,
        operator=plan.lowered.tick_name(maker),
        kind=plan.lowered.tick_kind(maker),
        shape=value.spec.shape,
        dtype=value.spec.dtype.name,
        role=value.role.value,
        bytes=size,
        share=size / total,
        begin=int(problem.begin[chunk]),
        end=int(problem.end[chunk]),
        offset=int(plan.plan.offset[chunk]),
    )
