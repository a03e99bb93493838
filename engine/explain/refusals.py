"""Why an operator does not write over an input that it may write over.

Two have a say: `engine.lower.overwrite_rules` looks at bytes, when operators become calls;
`allocator.derive.overwrites` at lifetimes. Both are asked again here; nothing is guessed from the plan.
"""

from collections.abc import Iterator

from attrs import evolve, frozen

from allocator.derive.overwrites import Judged, Refusal
from engine.explain.accesses import Accesses, Use
from engine.lower.calls import Call, Value
from engine.lower.overwrite_rules import OverwriteRule, broken_parameter_rule, broken_rule
from engine.planning.placed import PlacedPlan
from ops.schema.schema import Overwrite

TAKEN, OFF = "taken", "off"
"""The overwrite is taken; overwrites are switched off."""
NOT_MEASURED = -1
_CHOICES = (Refusal.NONE, Refusal.ELSEWHERE, Refusal.GIVEN)
"""Of the planner, where it takes overwrites at all; all else is impossible."""


@frozen(eq=False)
class Forward:
    """An overwrite that an operator declares, and what came of it: `output` might lie in the bytes of `input`.

    `reason` is TAKEN, OFF or a value of Refusal or OverwriteRule. `readers` are those that read the bytes later
    ("later"), or in the same operator by another name ("beside"). `other` is the input that the output is written over
    instead ("elsewhere"), the output that takes the bytes ("given"), or the tensor in which the output is computed
    ("nested"). `output_bytes` and `input_bytes` are sizes; `offset` is declared, `chunk_offset` counts from the first
    byte of the chunk of the input.
    """

    operator: str
    kind: str
    tick: int
    output: str
    input: str
    offset: int
    output_bytes: int
    input_bytes: int
    reason: str
    readers: tuple[Use, ...]
    other: str
    output_chunk: int
    input_chunk: int
    chunk_offset: int = 0
    saves: int = NOT_MEASURED
    """Bytes of the arena if it could have been taken, where that was measured."""

    @property
    def is_taken(self) -> bool:
        """Whether the plan has it."""
        return self.reason == TAKEN


def forwards_of(found: Accesses, call: Call) -> tuple[Forward, ...]:
    """All that the operator of a call declares, in its order; once where it reads one tensor as two inputs."""
    if not call.operators:
        return ()
    declared = call.operators[0].schema.forwards(call.signature)
    inside = found.plan.chunks.offset_in_chunk
    judged = {(j.out, j.src, j.candidate.offset - int(inside[j.src])): j for j in found.judged.get(call.tick, ())}
    once = {(call.outputs[each.output], call.inputs[each.input], each.offset): each for each in reversed(declared)}
    return tuple(_forward(found, call, each, declared, judged) for each in declared if each in once.values())


def forwards_into(found: Accesses, chunks: tuple[int, ...]) -> Iterator[Forward]:
    """All that are declared for outputs that have these chunks."""
    wanted = set(chunks)
    for call in found.plan.lowered.calls:
        ids = [found.plan.ids.get(v) for v in call.outputs]
        if any(i is not None and int(found.plan.chunks.chunk_of[i]) in wanted for i in ids):
            yield from (f for f in forwards_of(found, call) if f.output_chunk in wanted)


def _forward(
    found: Accesses,
    call: Call,
    each: Overwrite,
    declared: tuple[Overwrite, ...],
    judged: dict[tuple[int, int, int], Judged],
) -> Forward:
    plan = found.plan
    out, taken = plan.lowered.values[call.outputs[each.output]], plan.lowered.values[call.inputs[each.input]]
    blank = Forward(
        operator=call.name,
        kind=plan.lowered.tick_kind(call.tick),
        tick=call.tick,
        output=out.name,
        input=taken.name,
        offset=each.offset,
        output_bytes=out.spec.nbytes,
        input_bytes=taken.spec.nbytes,
        reason=OverwriteRule.NONE,
        readers=(),
        other="",
        output_chunk=plan.chunk_of(out.id) if out.id in plan.ids else -1,
        input_chunk=plan.chunk_of(taken.id) if taken.id in plan.ids else -1,
    )
    if _in_place(plan, out.id, taken.id, each.offset):
        return evolve(blank, reason=TAKEN)
    if each in call.overwrites:
        return _by_lifetime(found, blank, judged[plan.ids[out.id], plan.ids[taken.id], each.offset])
    return evolve(blank, reason=_by_bytes(found, call, each, declared).value, other=_around(found, out))


def _in_place(plan: PlacedPlan, output: int, taken: int, offset: int) -> bool:
    """Whether both are computed in one place inside a third tensor."""
    one, other = plan.lowered.values[output], plan.lowered.values[taken]
    starts = one.layout.extent[0] == other.layout.extent[0] + offset
    return one.is_view and one.owner == other.owner and starts and one.spec.nbytes > 0


def _around(found: Accesses, output: Value) -> str:
    """The tensor in which an output is computed, if there is one."""
    return found.plan.lowered.values[output.owner].name if output.is_view else ""


def _by_bytes(found: Accesses, call: Call, each: Overwrite, declared: tuple[Overwrite, ...]) -> OverwriteRule:
    lowered = found.plan.lowered
    out, taken = call.outputs[each.output], call.inputs[each.input]
    if lowered.values[out].is_view:
        return OverwriteRule.NESTED
    against = broken_rule(each, declared, call.inputs, call.outputs, lowered.values)
    return against or broken_parameter_rule(each, taken, out, lowered.parameters)


def _by_lifetime(found: Accesses, blank: Forward, judged: Judged) -> Forward:
    candidate, reason = judged.candidate, judged.refusal
    if (candidate.src, candidate.dest, candidate.offset) in found.taken:
        return evolve(blank, reason=TAKEN)
    if reason in _CHOICES and not found.plan.options.overwrite:
        return evolve(blank, reason=OFF)
    told = evolve(blank, reason=reason.value, chunk_offset=candidate.offset)
    return evolve(told, readers=_readers(found, told, judged), other=_other(found, judged))


def _readers(found: Accesses, told: Forward, judged: Judged) -> tuple[Use, ...]:
    """Who is in the way: those that read later, or the same operator by another name."""
    uses = found.uses(judged.candidate.dest)
    if judged.refusal is Refusal.LATER:
        return tuple(u for u in uses if u.tick > judged.step)
    if judged.refusal is Refusal.BESIDE:
        return tuple(u for u in uses if u.tick == judged.step and u.tensor != told.input)
    return ()


def _other(found: Accesses, judged: Judged) -> str:
    """The tensor that was preferred: another one to be written over, or to write."""
    chunks = {Refusal.ELSEWHERE: found.giver(judged.candidate.src), Refusal.GIVEN: found.taker(judged.candidate.dest)}
    return "".join(found.name(c) for c in chunks.get(judged.refusal, ()))
