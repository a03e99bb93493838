"""What the arena holds at its peak: each tensor and why it is alive there, sums by role, and the next peak."""

from collections.abc import Iterable

import numpy as np
from attrs import evolve, frozen

from allocator import bounds
from allocator.problem import Column, Problem
from engine.explain.accesses import Accesses, Use
from engine.lower.calls import Role, Value
from engine.planning.placed import PlacedPlan
from engine.report.report import Report

FED, WRITTEN, READ, SCRATCH, HELD = "fed", "written", "read", "workspace", "held"
"""The uses of a tensor at the peak: the feed or the fetch touches it; the operator writes it, reads it, or computes in
it; or the tensor is only kept there for an operator that runs later."""
PADDING, ALIGNMENT, HOLES = "padding", "alignment", "fragmentation"


@frozen(eq=False)
class AliveTensor:
    """A chunk that is alive at the peak, by the tensor that it was made for. Sizes in bytes, without padding.

    It is first written in tick `written`, by `operator`, and read last by `last`. `need` says what the operator at the
    peak does with it. After the peak it has `later_readers`: `next` is the first, `wait` ticks later; `last` is the
    last of all. `fetched`: it is there at the end, as an output, or as the next value of the parameter `parameter`.
    `taker` is written over it. `joined` counts the tensors that are computed inside it. Of several memories it lies in
    `memory`.
    """

    tensor: str
    operator: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    bytes: int
    padding: int
    chunk: int
    offset: int
    written: int
    begin: int
    end: int
    need: str
    next: tuple[Use, ...]
    last: tuple[Use, ...]
    later_readers: int
    wait: int
    fetched: bool
    parameter: str
    taker: str
    joined: int
    memory: str


def alive_at(accesses: Accesses, chunk: int, tick: int) -> AliveTensor:
    """Describes a chunk that is alive in a tick."""
    plan, owner, uses = accesses.plan, accesses.owner(chunk), accesses.uses(chunk)
    written, later = accesses.written(chunk), tuple(u for u in uses if u.tick > tick)
    size = int(plan.chunks.size[chunk])
    members = [accesses.values[v] for v in accesses.members[chunk]]
    kept = {then: first for first, then in plan.lowered.parameters.items()}
    parameter = "".join(plan.lowered.values[kept[v.id]].name for v in members if v.id in kept)
    return AliveTensor(
        tensor=owner.name,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        shape=owner.spec.shape,
        dtype=owner.spec.dtype.name,
        role=accesses.roles[owner.id],
        bytes=size,
        padding=int(plan.problem.size[chunk]) - size,
        chunk=chunk,
        offset=int(plan.plan.offset[chunk]),
        written=written,
        begin=int(plan.problem.begin[chunk]),
        end=int(plan.problem.end[chunk]),
        need=_need(accesses, chunk, tick),
        next=later[:1],
        last=uses[-1:],
        later_readers=len({u.tick for u in later}),
        wait=later[0].tick - tick if later else 0,
        fetched=bool(uses) and uses[-1].tick == accesses.last_tick,
        parameter=parameter,
        taker="".join(accesses.name(c) for c in accesses.overwriter(chunk)),
        joined=sum(v.is_view and _is_computed(accesses, v) for v in members),
        memory=plan.memory_of(chunk),
    )


def _is_computed(accesses: Accesses, value: Value) -> bool:
    """Returns whether an operator writes a tensor where it lies; parts that are copied there are not computed there."""
    written = accesses.instruction(accesses.writers.get(value.id, 0))
    return value.role is not Role.WORKSPACE and any(instruction.operators for instruction in written)


def _need(accesses: Accesses, chunk: int, tick: int) -> str:
    """Returns the use that the operator of a tick makes of a chunk: FED, READ, WRITTEN, SCRATCH or HELD."""
    owner, step = accesses.owner(chunk), accesses.program.steps[tick]
    chunk_of = accesses.plan.chunks.chunk_of
    if not accesses.instruction(tick) and any(int(chunk_of[v]) == chunk for v in (*step.reads, *step.writes)):
        return FED
    if any(int(chunk_of[v]) == chunk for v in step.reads):
        return READ
    if any(int(chunk_of[v]) == chunk for v in (*step.writes, *(view.out for view in step.views))):
        return SCRATCH if owner.role is Role.WORKSPACE else WRITTEN
    return HELD


@frozen
class ArenaPart:
    """A part of the arena at the peak: `what` is the role of `tensors` tensors, or padding, alignment or holes.

    `share` is its part of the arena, from 0 to 1.
    """

    what: str
    bytes: int
    tensors: int
    share: float


def parts(report: Report, alive: Iterable[AliveTensor]) -> tuple[ArenaPart, ...]:
    """Returns parts that add up to the arena: roles, the largest first, then padding, alignment loss, other holes."""
    roles, count, padding = dict[str, int](), dict[str, int](), 0
    for each in alive:
        roles[each.role] = roles.get(each.role, 0) + each.bytes
        count[each.role] = count.get(each.role, 0) + 1
        padding += each.padding
    whole = max(report.arena_bytes, 1)
    by_role = [ArenaPart(role, size, count[role], size / whole) for role, size in roles.items()]
    by_role.sort(key=lambda part: (-part.bytes, part.what))
    idle = ((PADDING, padding), (ALIGNMENT, report.alignment_loss), (HOLES, report.fragmentation))
    return (*by_role, *(ArenaPart(what, size, 0, size / whole) for what, size in idle))


@frozen
class OtherPeak:
    """The peak if the tensors at the peak had no bytes. Changes to these tensors alone cannot save more.

    `bytes` are alive there, and `most_saved` is the arena less that. Where a tensor at the peak is overwritten, the
    tensor in its bytes counts here; but a parameter and its next value are one. Tick 0 and no bytes where the plan
    does not reuse bytes: then all tensors are at the peak.
    """

    tick: int
    operator: str
    kind: str
    bytes: int
    most_saved: int


def other_peak(plan: PlacedPlan, chunks: Column) -> OtherPeak:
    """Returns the peak of a plan without `chunks`, which are alive at its peak."""
    live = bounds.profile(_without(plan.problem, _with_parameters(plan, chunks)))
    tick = int(live.argmax()) if len(live) and plan.options.reuse else 0
    size = int(live[tick]) if len(live) and plan.options.reuse else 0
    return OtherPeak(tick, plan.lowered.tick_name(tick), plan.lowered.tick_kind(tick), size, plan.arena_bytes - size)


def _with_parameters(plan: PlacedPlan, chunks: Column) -> Column:
    """Returns the chunks, and for each parameter among them the chain of overwrites in which it is updated."""
    root = plan.problem.chains.root
    pairs = ((first, then) for first, then in plan.lowered.parameters.items() if {first, then} <= plan.ids.keys())
    kept = np.array([(plan.chunk_of(first), plan.chunk_of(then)) for first, then in pairs], np.int64).reshape(-1, 2)
    roots = root[kept[np.isin(kept, chunks).any(axis=1)]]
    return np.union1d(chunks, np.flatnonzero(np.isin(root, roots)))


def _without(problem: Problem, chunks: Column) -> Problem:
    """Returns the problem in which these chunks have no bytes; chunks that overwrite them have bytes of their own."""
    size, left = problem.size.copy(), ~np.isin(problem.dest, chunks)
    size[chunks] = 0
    src, dest, offset = problem.src[left], problem.dest[left], problem.overwrite_offset[left]
    return evolve(problem, size=size, src=src, dest=dest, overwrite_offset=offset)
