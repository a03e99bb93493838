"""The tensors that are alive at the peak of a plan, or that may be alive at once."""

import numpy as np
from attrs import evolve, frozen

from allocator import bounds
from allocator.concurrency import happens_before
from allocator.derive.users import Users, users
from allocator.errors import TooManyError
from allocator.policies.exact import conflicts
from allocator.problem import Column, Problem, column
from engine.lower.calls import Value
from engine.lower.roles import roles_of
from engine.lower.schedule import BARRIER, Schedule, nodes_between_ends
from engine.planning.placed import PlacedPlan

_MOST_NODES = 5_000
"""Nodes of a schedule up to which chunks that may be alive at once are searched: beyond, that takes too long."""


@frozen(eq=False)
class PeakTensor:
    """A chunk that is alive at the peak, and the operator that writes it, with the name of its schema as `kind`.

    `share` is its part of the live bytes, from 0 to 1; it is alive in the ticks [begin, end).
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
    """Returns the tick of the peak and the tensors that are alive in it, the largest first."""
    tick, chunks = peak_chunks(plan)
    total = max(int(plan.problem.size[chunks].sum()), 1)
    owners, makers, roles = plan.owners(plan.chunks), plan.lowered.makers, roles_of(plan.lowered)
    return tick, tuple(
        _peak_tensor(plan, v, role=roles[v.id], chunk=c, maker=makers.get(v.id, 0), total=total)
        for c, v in ((c, owners[c]) for c in chunks.tolist())
    )


def peak_chunks(plan: PlacedPlan) -> tuple[int, Column]:
    """Returns the tick of the peak and the chunks that are alive in it, the largest first.

    Where operators run at once there is no such tick: then these are the heaviest chunks of which each two may be alive
    at once, as far as the search finds them, and the tick in which the last one is written. For schedules of more than
    _MOST_NODES nodes, it is the peak of calls that run one after the other.
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
    """Returns the chunks that are alive in a tick; one that is being overwritten counts, its overwriter does not."""
    alive = (problem.begin <= tick) & (tick < problem.end) & (problem.size > 0)
    alive[problem.src[problem.begin[problem.src] == tick]] = False
    return np.flatnonzero(alive)


def _at_once(plan: PlacedPlan) -> Column:
    """Returns the heaviest chunks that may be alive at once, by the dependences of the plan's schedule."""
    node_of = _node_of(plan.schedule, len(plan.lowered.instructions) + 2)
    touched, waits = users(plan.program), nodes_between_ends(plan.schedule)
    try:
        at_once = conflicts(plan.problem, Users(touched.start, node_of[touched.tick]), happens_before(waits))
    except TooManyError:
        return _alive(plan.problem, bounds.peak_tick(plan.problem))
    return bounds.heaviest(evolve(plan.problem, conflicts=at_once))


def _node_of(schedule: Schedule, ticks: int) -> Column:
    """Returns the node of each tick; the feed is node 0, the fetch the last one. Aliases have none and get 0."""
    nodes = np.zeros(ticks, np.int64)
    nodes[schedule.tick[schedule.tick != BARRIER]] = np.flatnonzero(schedule.tick != BARRIER) + 1
    nodes[-1] = len(schedule) + 1
    return nodes


def _peak_tensor(plan: PlacedPlan, value: Value, *, role: str, chunk: int, maker: int, total: int) -> PeakTensor:
    problem, size = plan.problem, int(plan.problem.size[chunk])
    return PeakTensor(
        name=value.name,
        operator=plan.lowered.tick_name(maker),
        kind=plan.lowered.tick_kind(maker),
        shape=value.spec.shape,
        dtype=value.spec.dtype.name,
        role=role,
        bytes=size,
        share=size / total,
        begin=int(problem.begin[chunk]),
        end=int(problem.end[chunk]),
        offset=int(plan.plan.offset[chunk]),
    )
