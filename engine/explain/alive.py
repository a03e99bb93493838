"""What is alive at the peak, and why: who wrote it, who reads it, and whether the operator there needs it at all."""

from attrs import frozen

from engine.explain.accesses import Accesses, Use
from engine.lower.calls import Role, Value

FED, WRITTEN, READ, SCRATCH, HELD = "fed", "written", "read", "workspace", "held"
"""What the operator at the peak does with a tensor: it is the feeding or fetching itself that touches it; it writes it,
reads it, computes in it; or it only waits there for an operator that comes later."""


@frozen(eq=False)
class AliveTensor:
    """A chunk that is alive at the peak, by the tensor that it was made for. Sizes in bytes, without padding.

    It is first written in tick `written`, by `operator`, and read last by `last`. `need` says what the operator at the
    peak does with it. After the peak it has `later_readers`: `next` is the first, `wait` ticks later; `last` is the
    last of all. `fetched`: it is there at the end, as an output, or as what the parameter of the name `parameter` then
    holds. `taker` is written over it. As many tensors as `joined` says are computed inside it.
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


def alive_at(found: Accesses, chunk: int, tick: int) -> AliveTensor:
    """Of a chunk that is alive in a tick."""
    plan, owner, uses = found.plan, found.owner(chunk), found.uses(chunk)
    written, later = found.written(chunk), tuple(u for u in uses if u.tick > tick)
    size = int(plan.chunks.size[chunk])
    members = [found.values[v] for v in found.members[chunk]]
    kept = {then: first for first, then in plan.lowered.parameters.items()}
    parameter = "".join(plan.lowered.values[kept[v.id]].name for v in members if v.id in kept)
    return AliveTensor(
        tensor=owner.name,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        shape=owner.spec.shape,
        dtype=owner.spec.dtype.name,
        role=Role.PARAMETER.value if parameter else owner.role.value,
        bytes=size,
        padding=int(plan.problem.size[chunk]) - size,
        chunk=chunk,
        offset=int(plan.plan.offset[chunk]),
        written=written,
        begin=int(plan.problem.begin[chunk]),
        end=int(plan.problem.end[chunk]),
        need=_need(found, chunk, tick),
        next=later[:1],
        last=uses[-1:],
        later_readers=len({u.tick for u in later}),
        wait=later[0].tick - tick if later else 0,
        fetched=bool(uses) and uses[-1].tick == found.last_tick,
        parameter=parameter,
        taker="".join(found.name(c) for c in found.taker(chunk)),
        joined=sum(v.is_view and _is_computed(found, v) for v in members),
    )


def _is_computed(found: Accesses, value: Value) -> bool:
    """Whether an operator writes a tensor where it lies; the parts that are copied there are none of these."""
    written = found.stage(found.writers.get(value.id, 0))
    return value.role is not Role.WORKSPACE and any(stage.operators for stage in written)


def _need(found: Accesses, chunk: int, tick: int) -> str:
    """What happens to a chunk in a tick."""
    owner, step = found.owner(chunk), found.program.steps[tick]
    chunk_of = found.plan.chunks.chunk_of
    if not found.stage(tick) and any(int(chunk_of[v]) == chunk for v in (*step.reads, *step.writes)):
        return FED
    if any(int(chunk_of[v]) == chunk for v in step.reads):
        return READ
    if any(int(chunk_of[v]) == chunk for v in (*step.writes, *(view.out for view in step.views))):
        return SCRATCH if owner.role is Role.WORKSPACE else WRITTEN
    return HELD
