"""Finds what there is to say of one tensor of a plan."""

from collections.abc import Collection, Iterator
from typing import Any

from engine.explain.accesses import Accesses, Use, accesses_of
from engine.explain.names import check_name
from engine.explain.neighbours import neighbours
from engine.explain.refusals import Forward, forwards_of
from engine.explain.tensor_story import NOWHERE, TensorStory
from engine.lower.calls import Stage, Storage, Value
from engine.planning.placed import PlacedPlan
from engine.report.peak import peak_chunks


def explain_tensor(plan: PlacedPlan, name: str) -> TensorStory:
    """Raises UnknownNameError."""
    lowered = plan.lowered
    known = {v.name: v for v in reversed(lowered.values)}
    check_name("tensor", name, known, lowered.graph.name)
    value, found = known[name], accesses_of(plan)
    if value.storage is not Storage.ARENA:
        return _outside(found, value)
    return _inside(found, value)


def _inside(found: Accesses, value: Value) -> TensorStory:
    plan, chunk = found.plan, found.plan.chunk_of(value.id)
    number, owner = plan.ids[value.id], found.owner(chunk)
    low, high = plan.places[value.id].layout.extent
    tick, at_peak = peak_chunks(plan)
    below, above = neighbours(found, chunk) if plan.problem.size[chunk] else ((), ())
    written = found.writers.get(value.id, found.written(chunk))
    others = [found.values[v] for v in found.members[chunk] if v != number and found.values[v].is_view]
    inner = tuple(v.name for v in others if v.id in found.writers)
    return TensorStory(
        **_plain(found, value),
        chunk=chunk,
        chunk_of=owner.name,
        offset=low,
        span=high - low,
        inside=int(plan.chunks.offset_in_chunk[number]),
        padding=int(plan.problem.size[chunk] - plan.chunks.size[chunk]),
        begin=int(plan.problem.begin[chunk]),
        end=int(plan.problem.end[chunk]),
        written=written,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        readers=found.uses_of(number),
        holders=found.uses(chunk),
        overwrites="".join(found.name(c) for c in found.giver(chunk)),
        overwritten_by="".join(found.name(c) for c in found.taker(chunk)),
        views=tuple(v.name for v in others if v.id not in found.writers),
        parts=inner,
        peak_tick=tick,
        is_at_peak=chunk in at_peak,
        heir=_heir(found, chunk, set(at_peak.tolist())),
        below=below,
        above=above,
        forwards=tuple(f for s in found.stage(written) for f in _forwards(found, s, value.name)),
    )


def _heir(found: Accesses, chunk: int, at_peak: Collection[int]) -> str:
    """The member of a chain of overwrites that is alive at the peak, where the chunk itself is not."""
    if chunk in at_peak:
        return ""
    chain = [chunk]
    for follow in (found.taker, found.giver):
        at = follow(chunk)
        while at:
            chain += at
            at = follow(at[0])
    return "".join(found.name(c) for c in chain if c in at_peak)


def _forwards(found: Accesses, stage: Stage, output: str) -> Iterator[Forward]:
    """What the operator that writes a tensor may have written it over."""
    calls = (call for call in found.plan.lowered.calls if call.tick == stage.tick)
    yield from (f for call in calls for f in forwards_of(found, call) if f.output == output)


def _plain(found: Accesses, value: Value) -> dict[str, Any]:
    """What there is to tell of any tensor."""
    return {
        "model": found.plan.lowered.graph.name,
        "tensor": value.name,
        "shape": value.spec.shape,
        "dtype": value.spec.dtype.name,
        "bytes": value.spec.nbytes,
        "role": value.role.value,
        "storage": value.storage.value,
        "last_tick": found.last_tick,
    }


def _outside(found: Accesses, value: Value) -> TensorStory:
    """A constant, or what lies in an array of the caller's."""
    plan = found.plan
    written = found.writers.get(value.id, 0)
    stages = ((s.tick, s) for s in plan.lowered.stages if value.id in s.inputs)
    uses = tuple(Use(tick, s.name, plan.lowered.tick_kind(tick), value.name) for tick, s in stages)
    return TensorStory(
        **_plain(found, value),
        chunk=NOWHERE,
        chunk_of="",
        offset=NOWHERE,
        span=value.spec.nbytes,
        inside=NOWHERE,
        padding=0,
        begin=NOWHERE,
        end=NOWHERE,
        written=written,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        readers=uses,
        holders=uses,
        overwrites="",
        overwritten_by="",
        views=(),
        parts=(),
        peak_tick=peak_chunks(plan)[0],
        is_at_peak=False,
        heir="",
        below=(),
        above=(),
        forwards=(),
    )
