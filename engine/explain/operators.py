"""One operator of a plan: what it reads and writes, and who waits in the arena while it runs."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import asdict, frozen

from engine.explain.accesses import Accesses, accesses_of
from engine.explain.alive import HELD, AliveTensor, alive_at
from engine.explain.names import check_name, shown
from engine.explain.refusals import Forward, forwards_of
from engine.explain.sentences import operator, shape, why_alive, why_not
from engine.lower.calls import Alias, Call, Storage
from engine.planning.placed import PlacedPlan
from engine.report.peak import peak_of
from engine.text.plurals import counted
from engine.text.units import format_bytes

FEED, FETCH = "feed", "fetch"
CALL, ALIAS, JOIN, HAND_OVER = "call", "alias", "join", "hand over"


@frozen(eq=False)
class OperandTensor:
    """A tensor that an operator reads or writes; `storage` says whose bytes it has."""

    tensor: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    role: str
    storage: str


@frozen(eq=False)
class OperatorStory:
    """Sizes in bytes. `form` is what is left of it at run time: a call of a kernel, an alias or a join (nothing runs),
    or the feed and the fetch, which in a stage that is not the last hands over. `alive` is what has bytes in its tick,
    `live_bytes` all of them; `peak_bytes` are those of the peak. `forwards` are the overwrites that it declares.
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

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """A page for people, with the `most` largest tensors that wait."""
        return "\n".join(_lines(self, most)) + "\n"

    def __str__(self) -> str:
        return self.text()


def explain_operator(plan: PlacedPlan, name: str) -> OperatorStory:
    """Raises UnknownNameError."""
    lowered = plan.lowered
    last = len(lowered.stages) + 1
    known = {FETCH: last, FEED: 0} | {s.name: s.tick for s in reversed(lowered.stages)}
    check_name("operator", name, known, lowered.graph.name)
    found, tick = accesses_of(plan), known[name]
    at_peak, tensors = peak_of(plan)
    chunks = _alive(found, tick)
    stages = found.stage(tick)
    calls = [s for s in stages if isinstance(s, Call)]
    return OperatorStory(
        model=lowered.graph.name,
        operator=name,
        kind=lowered.tick_kind(tick),
        form=_form(found, tick, stages),
        kernel="".join(call.kernel.name for call in calls),
        backend="".join(call.kernel.backend for call in calls),
        tick=tick,
        last_tick=last,
        inputs=_operands(plan, [v for s in stages for v in s.inputs] or _ends(found, tick)[0]),
        outputs=_operands(plan, [v for s in stages for v in s.outputs] or _ends(found, tick)[1]),
        workspace_bytes=sum(lowered.values[v].spec.nbytes for call in calls for v in call.workspace),
        live_bytes=int(plan.problem.size[chunks].sum()),
        peak_bytes=sum(t.bytes for t in tensors),
        peak_tick=at_peak,
        peak_operator=lowered.tick_name(at_peak),
        arena_bytes=plan.arena_bytes,
        parallel=plan.schedule.policy,
        reuse=plan.options.reuse,
        alive=tuple(alive_at(found, chunk, tick) for chunk in chunks),
        forwards=tuple(f for call in calls for f in forwards_of(found, call)),
    )


def _alive(found: Accesses, tick: int) -> list[int]:
    """As at the peak: what is overwritten in the tick counts, and its overwriter does not yet. The largest first."""
    problem = found.plan.problem
    lives = (problem.begin <= tick) & (tick < problem.end) & (problem.size > 0)
    lives[problem.src[problem.begin[problem.src] == tick]] = False
    chunks: list[int] = np.flatnonzero(lives).tolist()
    return sorted(chunks, key=lambda c: (-int(problem.size[c]), int(found.plan.plan.offset[c])))


def _form(found: Accesses, tick: int, stages: Sequence[object]) -> str:
    if not stages:
        return (HAND_OVER if found.plan.lowered.hands_over else FETCH) if tick else FEED
    return CALL if isinstance(stages[0], Call) else ALIAS if isinstance(stages[0], Alias) else JOIN


def _ends(found: Accesses, tick: int) -> tuple[list[int], list[int]]:
    """What the fetch reads, and what the feed writes."""
    if found.stage(tick):
        return [], []
    step = found.program.steps[tick]
    return [found.values[v].id for v in step.reads], [found.values[v].id for v in step.writes]


def _operands(plan: PlacedPlan, ids: Sequence[int]) -> tuple[OperandTensor, ...]:
    values = [plan.lowered.values[v] for v in ids]
    return tuple(
        OperandTensor(v.name, v.spec.shape, v.spec.dtype.name, v.spec.nbytes, v.role.value, v.storage.value)
        for v in values
    )


_FORMS = {
    HAND_OVER: "later stages take over what they need",
    ALIAS: "nothing runs: its outputs are views of its first input",
    JOIN: "nothing runs: its inputs were computed where they lie in its output",
    FEED: "the caller feeds inputs, and parameters have their values",
    FETCH: "the caller fetches outputs, and parameters keep their values",
}


def _lines(told: OperatorStory, most: int) -> Iterator[str]:
    what = _FORMS.get(told.form, f"kernel {told.kernel} of {told.backend}")
    yield f"{operator(told.operator, told.kind)}: tick {told.tick} of {told.last_tick} in {shown(told.model)}; {what}"
    for verb, operands in (("reads", told.inputs), ("writes", told.outputs)):
        yield from (f"  {verb} {_operand(each)}" for each in operands[:most])
        if len(operands) > most:
            yield f"  {verb} {len(operands) - most} more"
    if told.workspace_bytes:
        yield f"  needs {format_bytes(told.workspace_bytes)} of workspace while it runs"
    for forward in told.forwards:
        yield f"  may write {shown(forward.output)} over {shown(forward.input)}: {_came_of(forward)}"
    yield from _waiting(told, most)


def _operand(each: OperandTensor) -> str:
    whose = {Storage.CONSTANT.value: ", a constant", Storage.CALLER.value: ", the caller's array"}.get(each.storage, "")
    return f"{shown(each.tensor)}, {shape(each.shape, each.dtype)}, {format_bytes(each.bytes)}{whose}"


def _came_of(forward: Forward) -> str:
    return "it does" if forward.is_taken else f"it does not, as {why_not(forward)}"


def _waiting(told: OperatorStory, most: int) -> Iterator[str]:
    yield _beside_peak(told)
    held = [a for a in told.alive if a.need == HELD]
    if not held:
        yield "Nobody else waits in the arena."
        return
    size = format_bytes(sum(a.bytes + a.padding for a in held))
    yield f"Of these, {size} only wait, in {counted(len(held), 'tensor')}:"
    for alive in held[:most]:
        size = format_bytes(alive.bytes + alive.padding)
        yield f"  {size:>11}  {shown(alive.tensor)}: {why_alive(alive, told.tick, not told.reuse)}"
    if len(held) > most:
        yield f"  ... and {counted(len(held) - most, 'smaller one')}"


def _beside_peak(told: OperatorStory) -> str:
    live = f"{format_bytes(told.live_bytes)} are alive while it runs, in {counted(len(told.alive), 'tensor')}"
    if told.parallel:
        return f"In sequence, {live}; where operators run at once, {format_bytes(told.peak_bytes)} may be at most."
    if told.tick == told.peak_tick:
        return f"{live}: this is the peak."
    share = told.live_bytes / told.peak_bytes if told.peak_bytes else 0.0
    return f"{live}: {share:.0%} of the peak, which is at {shown(told.peak_operator)} (tick {told.peak_tick})."
