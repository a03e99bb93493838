"""One operator of a plan: what it reads and writes, and which tensors are alive while it runs."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import asdict, frozen

from engine.explain.accesses import Accesses, accesses_of
from engine.explain.names import FEED, FETCH, find_operator
from engine.explain.overwrites import Forward, forwards_of
from engine.explain.peak import HELD, AliveTensor, alive_at
from engine.explain.sentences import operator, outcome, shape, shown, why_alive
from engine.lower.calls import Alias, Call, Storage
from engine.lower.kernel_choice import PassedOver, passed_over
from engine.planning.placed import PlacedPlan
from engine.report.peak import peak_of
from engine.text.tables import joined
from engine.text.units import counted, format_bytes
from ops.schema.backends import NOBODY

CALL, ALIAS, JOIN, HAND_OVER = "call", "alias", "join", "hand over"


@frozen(eq=False)
class OperandTensor:
    """A tensor that an operator reads or writes; `storage` says where its bytes are."""

    tensor: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    role: str
    storage: str


@frozen(eq=False)
class OperatorExplanation:
    """The explanation of one operator. Sizes in bytes.

    `form` is what remains of it at run time: a call of a kernel, an alias or a join (nothing runs), the feed or the
    fetch; the fetch of a stage that is not the last one hands tensors over. `alive` are the tensors in its tick, with
    `live_bytes` in all; `peak_bytes` are alive at the peak. `forwards` are the overwrites that it declares;
    `passed_over` are the kernels that were asked before its own, with the reasons why they are not taken. `parts` are
    the operators that passes fused into it; `fate` says what became of the one that was asked for, where this one
    computes it, or that several have its name in the model.
    """

    model: str
    operator: str
    kind: str
    form: str
    kernel: str
    backend: str
    tick: int
    last_tick: int
    inputs: tuple[OperandTensor, ...]
    outputs: tuple[OperandTensor, ...]
    workspace_bytes: int
    live_bytes: int
    peak_bytes: int
    peak_tick: int
    peak_operator: str
    arena_bytes: int
    parallel: str
    reuse: bool
    alive: tuple[AliveTensor, ...]
    forwards: tuple[Forward, ...]
    passed_over: tuple[PassedOver, ...]
    parts: tuple[str, ...]
    fate: str

    def __repr__(self) -> str:
        """Returns one line; `print` shows the explanation."""
        return f"<explanation of operator {self.operator!r}>"

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """Returns the explanation as lines of text, with the `most` largest tensors that are alive."""
        return joined(_lines(self, most))

    def __str__(self) -> str:
        return self.text()


def explain_operator(plan: PlacedPlan, name: str) -> OperatorExplanation:
    """Explains one operator by its name in a trace or in the model, or "feed" or "fetch".

    Raises UnknownNameError.
    """
    lowered = plan.lowered
    last = len(lowered.instructions) + 1
    ticks = {FETCH: last, FEED: 0} | {s.name: s.tick for s in reversed(lowered.instructions)}
    match = find_operator(lowered, name)
    accesses, tick = accesses_of(plan), ticks[match.name]
    at_peak, tensors = peak_of(plan)
    chunks = _alive(accesses, tick)
    instructions = accesses.instruction(tick)
    calls = [s for s in instructions if isinstance(s, Call)]
    return OperatorExplanation(
        model=lowered.graph.name,
        operator=match.name,
        kind=lowered.tick_kind(tick),
        form=_form(accesses, tick, instructions),
        kernel="".join(call.kernel.name for call in calls),
        backend="".join(call.kernel.backend for call in calls),
        tick=tick,
        last_tick=last,
        inputs=_operands(accesses, [v for s in instructions for v in s.inputs] or _ends(accesses, tick)[0]),
        outputs=_operands(accesses, [v for s in instructions for v in s.outputs] or _ends(accesses, tick)[1]),
        workspace_bytes=sum(lowered.values[v].spec.nbytes for call in calls for v in call.workspace),
        live_bytes=int(plan.problem.size[chunks].sum()),
        peak_bytes=sum(t.bytes for t in tensors),
        peak_tick=at_peak,
        peak_operator=lowered.tick_name(at_peak),
        arena_bytes=plan.arena_bytes,
        parallel=plan.schedule.policy,
        reuse=plan.options.reuse,
        alive=tuple(alive_at(accesses, chunk, tick) for chunk in chunks),
        forwards=tuple(f for call in calls for f in forwards_of(accesses, call)),
        passed_over=tuple(p for call in calls for p in passed_over(lowered, call)),
        parts=lowered.graph.vanished.all_parts().get(match.name, ()),
        fate=match.fate,
    )


def _alive(accesses: Accesses, tick: int) -> list[int]:
    """Returns the chunks that are alive in a tick, the largest first.

    A chunk that is overwritten in the tick counts, its overwriter does not yet, as at the peak.
    """
    problem = accesses.plan.problem
    alive = (problem.begin <= tick) & (tick < problem.end) & (problem.size > 0)
    alive[problem.src[problem.begin[problem.src] == tick]] = False
    chunks: list[int] = np.flatnonzero(alive).tolist()
    return sorted(chunks, key=lambda c: (-int(problem.size[c]), int(accesses.plan.plan.offset[c])))


def _form(accesses: Accesses, tick: int, instructions: Sequence[object]) -> str:
    if not instructions:
        return (HAND_OVER if accesses.plan.lowered.hands_over else FETCH) if tick else FEED
    return CALL if isinstance(instructions[0], Call) else ALIAS if isinstance(instructions[0], Alias) else JOIN


def _ends(accesses: Accesses, tick: int) -> tuple[list[int], list[int]]:
    """Returns the values that the fetch reads and those that the feed writes; empty for other ticks."""
    if accesses.instruction(tick):
        return [], []
    step = accesses.program.steps[tick]
    return [accesses.values[v].id for v in step.reads], [accesses.values[v].id for v in step.writes]


def _operands(accesses: Accesses, ids: Sequence[int]) -> tuple[OperandTensor, ...]:
    values = [accesses.plan.lowered.values[v] for v in ids]
    return tuple(
        OperandTensor(v.name, v.spec.shape, v.spec.dtype.name, v.spec.nbytes, accesses.roles[v.id], v.storage.value)
        for v in values
    )


_FORMS = {
    HAND_OVER: "later stages take over what they need",
    ALIAS: "nothing runs: its outputs are views of its first input",
    JOIN: "nothing runs: its inputs were computed where they lie in its output",
    FEED: "the caller feeds inputs, and parameters have their values",
    FETCH: "the caller fetches outputs, and parameters keep their values",
}


_UNKNOWN = "nobody implements it: it is planned with declared outputs and no workspace, and cannot run"


def _lines(facts: OperatorExplanation, most: int) -> Iterator[str]:
    if facts.fate:
        yield facts.fate
    kernel = f"kernel {facts.kernel} of {facts.backend}" if facts.backend != NOBODY else _UNKNOWN
    what = _FORMS.get(facts.form, kernel)
    when = f"tick {facts.tick} of {facts.last_tick} in {shown(facts.model)}"
    yield f"{operator(facts.operator, facts.kind)}: {when}; {what}"
    for verb, operands in (("reads", facts.inputs), ("writes", facts.outputs)):
        yield from (f"  {verb} {_operand(each)}" for each in operands[:most])
        if len(operands) > most:
            yield f"  {verb} {len(operands) - most} more"
    yield from (f"  {each}" for each in facts.passed_over)
    if facts.parts:
        more = f" and {len(facts.parts) - most} more" if len(facts.parts) > most else ""
        yield f"  computes also {', '.join(map(shown, facts.parts[:most]))}{more}"
    if facts.workspace_bytes:
        yield f"  needs {format_bytes(facts.workspace_bytes)} of workspace while it runs"
    for forward in facts.forwards:
        yield f"  may write {shown(forward.output)} over {shown(forward.input)}: {outcome(forward, 'does')}"
    yield from _waiting(facts, most)


def _operand(each: OperandTensor) -> str:
    whose = {Storage.CONSTANT.value: ", a constant", Storage.CALLER.value: ", the caller's array"}.get(each.storage, "")
    return f"{shown(each.tensor)}, {shape(each.shape, each.dtype)}, {format_bytes(each.bytes)}{whose}"


def _waiting(facts: OperatorExplanation, most: int) -> Iterator[str]:
    yield _beside_peak(facts)
    held = [a for a in facts.alive if a.need == HELD]
    if not held:
        yield "No tensor is only kept for later."
        return
    size = format_bytes(sum(a.bytes + a.padding for a in held))
    yield f"Of these, {size} are only kept for later, in {counted(len(held), 'tensor')}:"
    for alive in held[:most]:
        size = format_bytes(alive.bytes + alive.padding)
        yield f"  {size:>11}  {shown(alive.tensor)}: {why_alive(alive, facts.tick, not facts.reuse)}"
    if len(held) > most:
        yield f"  ... and {counted(len(held) - most, 'smaller one')}"


def _beside_peak(facts: OperatorExplanation) -> str:
    live = f"{format_bytes(facts.live_bytes)} are alive while it runs, in {counted(len(facts.alive), 'tensor')}"
    if facts.parallel:
        return f"In sequence, {live}; where operators run at once, {format_bytes(facts.peak_bytes)} may be at most."
    if facts.tick == facts.peak_tick:
        return f"{live}: this is the peak."
    share = facts.live_bytes / facts.peak_bytes if facts.peak_bytes else 0.0
    return f"{live}: {share:.0%} of the peak, which is at {shown(facts.peak_operator)} (tick {facts.peak_tick})."
