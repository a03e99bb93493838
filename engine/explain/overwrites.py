"""Why an operator does not write over an input that it may write over, and what the arena would be if it did.

Two rules decide: `engine.lower.overwrite_rules` looks at bytes when operators become calls, and
`allocator.derive.overwrites` looks at lifetimes. Both are asked again here; nothing is guessed from the plan.
What an overwrite would save is measured by a search: the same problem with one overwrite more. The overwritten tensor
ends there, so all of its later readers are ignored, not just those of a part of its bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from allocator import bounds, solvers
from allocator.derive.overwrites import Judged, Refusal
from allocator.problem import FREE, Problem
from engine.explain.accesses import Accesses, Use
from engine.lower.calls import Call, Value
from engine.lower.overwrite_rules import OverwriteRule, broken_parameter_rule, broken_rule
from engine.planning.placed import PlacedPlan
from ops.schema.schema import Overwrite

TAKEN, OFF = "taken", "off"
"""The overwrite is taken; overwrites are switched off."""
NOT_MEASURED = -1
NODES = 1_000
"""Steps of the search for each arena with one overwrite more: more steps would take longer and might save more."""
MOST_MEASURED = 8
"""Overwrites that are measured, the largest ones: each costs a search."""
MOST_CHUNKS = 20_000
"""Size of a problem beyond which no overwrite is measured, since each search would take too long."""
_CHOICES = (Refusal.NONE, Refusal.ELSEWHERE, Refusal.GIVEN)
"""Verdicts that are choices of the planner; with all others the overwrite is impossible."""
_REMOVABLE = frozenset({Refusal.LATER.value, Refusal.BESIDE.value, Refusal.PROTECTED.value})
"""Reasons that another graph could remove: the bytes are there and large enough, but still needed."""


@frozen(eq=False)
class Forward:
    """An overwrite that an operator declares, with the verdict: `output` might lie in the bytes of `input`.

    `reason` is TAKEN, OFF or a value of Refusal or OverwriteRule. `readers` are those that read the bytes later
    ("later"), or in the same operator by another name ("beside"). `other` is the input that the output is written over
    instead ("elsewhere"), the output that takes the bytes ("given"), or the tensor in which the output is computed
    ("nested"). `output_bytes` and `input_bytes` are sizes; `offset` is declared, and `chunk_offset` counts from the
    first byte of the chunk of the input.
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
    """Bytes by which the arena would be smaller with this overwrite, where that was measured."""

    @property
    def is_taken(self) -> bool:
        """True if the plan has this overwrite."""
        return self.reason == TAKEN


def forwards_of(accesses: Accesses, call: Call) -> tuple[Forward, ...]:
    """Returns the overwrites that the operator of a call declares, in its order.

    An overwrite is listed once where the operator reads one tensor as two inputs.
    """
    if not call.operators:
        return ()
    declared = call.operators[0].schema.forwards(call.signature)
    inside = accesses.plan.chunks.offset_in_chunk
    judged = {(j.out, j.src, j.candidate.offset - int(inside[j.src])): j for j in accesses.judged.get(call.tick, ())}
    once = {(call.outputs[each.output], call.inputs[each.input], each.offset): each for each in reversed(declared)}
    return tuple(_forward(accesses, call, each, declared, judged) for each in declared if each in once.values())


def forwards_into(accesses: Accesses, chunks: tuple[int, ...]) -> Iterator[Forward]:
    """Yields the overwrites that are declared for outputs in these chunks."""
    wanted = set(chunks)
    for call in accesses.plan.lowered.calls:
        ids = [accesses.plan.ids.get(v) for v in call.outputs]
        if any(i is not None and int(accesses.plan.chunks.chunk_of[i]) in wanted for i in ids):
            yield from (f for f in forwards_of(accesses, call) if f.output_chunk in wanted)


def _forward(
    accesses: Accesses,
    call: Call,
    each: Overwrite,
    declared: tuple[Overwrite, ...],
    judged: dict[tuple[int, int, int], Judged],
) -> Forward:
    plan = accesses.plan
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
        return _by_lifetime(accesses, blank, judged[plan.ids[out.id], plan.ids[taken.id], each.offset])
    return evolve(blank, reason=_by_bytes(accesses, call, each, declared).value, other=_around(accesses, out))


def _in_place(plan: PlacedPlan, output: int, taken: int, offset: int) -> bool:
    """Returns whether both tensors are computed in the same place inside a third one."""
    one, other = plan.lowered.values[output], plan.lowered.values[taken]
    starts = one.layout.extent[0] == other.layout.extent[0] + offset
    return one.is_view and one.owner == other.owner and starts and one.spec.nbytes > 0


def _around(accesses: Accesses, output: Value) -> str:
    """Returns the name of the tensor in which an output is computed; empty where it has bytes of its own."""
    return accesses.plan.lowered.values[output.owner].name if output.is_view else ""


def _by_bytes(accesses: Accesses, call: Call, each: Overwrite, declared: tuple[Overwrite, ...]) -> OverwriteRule:
    lowered = accesses.plan.lowered
    out, taken = call.outputs[each.output], call.inputs[each.input]
    if lowered.values[out].is_view:
        return OverwriteRule.NESTED
    against = broken_rule(each, declared, call.inputs, call.outputs, lowered.values)
    return against or broken_parameter_rule(each, taken, out, lowered.parameters)


def _by_lifetime(accesses: Accesses, blank: Forward, judged: Judged) -> Forward:
    candidate, reason = judged.candidate, judged.refusal
    if (candidate.src, candidate.dest, candidate.offset) in accesses.taken:
        return evolve(blank, reason=TAKEN)
    if reason in _CHOICES and not accesses.plan.options.overwrite:
        return evolve(blank, reason=OFF)
    refused = evolve(blank, reason=reason.value, chunk_offset=candidate.offset)
    return evolve(refused, readers=_readers(accesses, refused, judged), other=_other(accesses, judged))


def _readers(accesses: Accesses, refused: Forward, judged: Judged) -> tuple[Use, ...]:
    """Returns the reads that are in the way: later ones, or those of the same operator by another name."""
    uses = accesses.uses(judged.candidate.dest)
    if judged.refusal is Refusal.LATER:
        return tuple(u for u in uses if u.tick > judged.step)
    if judged.refusal is Refusal.BESIDE:
        return tuple(u for u in uses if u.tick == judged.step and u.tensor != refused.input)
    return ()


def _other(accesses: Accesses, judged: Judged) -> str:
    """Returns the name of the tensor that the planner preferred, as the one to overwrite or as the one to write."""
    source, target = judged.candidate.src, judged.candidate.dest
    chunks = {Refusal.ELSEWHERE: accesses.overwritten(source), Refusal.GIVEN: accesses.overwriter(target)}
    return "".join(accesses.name(c) for c in chunks.get(judged.refusal, ()))


def measured(plan: PlacedPlan, forwards: Sequence[Forward]) -> tuple[Forward, ...]:
    """Returns the overwrites, the largest output first; the first MOST_MEASURED have the bytes that they would save."""
    ordered = sorted(forwards, key=lambda f: (-f.output_bytes, f.tick, f.input))
    return tuple(
        evolve(f, saves=saving(plan, f)) if i < MOST_MEASURED and is_counterfactual(plan, f) else f
        for i, f in enumerate(ordered)
    )


def is_counterfactual(plan: PlacedPlan, forward: Forward) -> bool:
    """Returns whether the problem with that overwrite is well-formed and small enough to be solved.

    Both chunks must have no other overwrite, and calls must run one after the other.
    """
    problem, src, dest = plan.problem, forward.output_chunk, forward.input_chunk
    if forward.reason not in _REMOVABLE or plan.schedule.policy or len(problem) > MOST_CHUNKS:
        return False
    fits = forward.chunk_offset + problem.size[src] <= problem.size[dest]
    alone = src not in problem.src and dest not in problem.dest and problem.pinned[src] == FREE
    return bool(fits and alone and problem.begin[dest] < problem.begin[src] and problem.begin[src] < problem.end[dest])


def saving(plan: PlacedPlan, forward: Forward) -> int:
    """Returns the bytes by which the arena would be smaller; 0 where the search finds no smaller one."""
    counterfactual = with_overwrite(plan, forward)
    if bounds.lower_bound(counterfactual) >= plan.arena_bytes:
        return 0
    return max(plan.arena_bytes - solvers.solve(counterfactual, nodes=NODES).arena_bytes, 0)


def with_overwrite(plan: PlacedPlan, forward: Forward) -> Problem:
    """Returns the problem in which the input ends where the output begins, and the output lies in its bytes."""
    problem, src, dest = plan.problem, forward.output_chunk, forward.input_chunk
    end, alignment = problem.end.copy(), problem.alignment.copy()
    end[dest], alignment[src] = problem.begin[src] + 1, 1
    more: dict[str, Any] = {
        "src": np.append(problem.src, src),
        "dest": np.append(problem.dest, dest),
        "overwrite_offset": np.append(problem.overwrite_offset, forward.chunk_offset),
    }
    return evolve(problem, end=end, alignment=alignment, **more)
