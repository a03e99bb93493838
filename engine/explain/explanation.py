"""Why an arena is as large as it is: the peak, the tensors alive there and why, and what would make it smaller."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from allocator.problem import Status
from engine.explain.accesses import Accesses, accesses_of
from engine.explain.alternatives import Alternative, Alternatives, FindAlternatives
from engine.explain.overwrites import TAKEN, Forward, forwards_into, measured
from engine.explain.peak import AliveTensor, ArenaPart, OtherPeak, alive_at, other_peak, parts
from engine.explain.sentences import operator, saved, shape, shown, why_alive, why_not
from engine.lower.calls import NotNested
from engine.planning.placed import PlacedPlan, Recomputed
from engine.report.layers import Layer, layer_table
from engine.report.memories import Transfers, memory_table
from engine.report.peak import peak_chunks
from engine.report.report import Report, report
from engine.text.tables import in_columns
from engine.text.units import counted, format_bytes

_FEW = 4
"""Refused overwrites, and copied inputs, that the text names; the JSON has all."""
_HARDLY = 0.001
"""Share of the arena; an alternative that saves less gets no line of its own."""
_MOSTLY = 0.9
"""Share of the arena that tensors at the peak must have for the text to call them the reason for its size."""


@frozen(eq=False)
class Explanation:
    """The explanation of a whole plan. Sizes in bytes.

    The `parts` add up to the arena; `alive` are the tensors at the peak, the largest first. `last_tick` is the tick in
    which outputs are fetched. `bound_reason` says what proves the lower bound. `refused` are overwrites that would have
    given a tensor at the peak the bytes of another, with the reason why they are not taken, the largest first.
    `not_nested` are operators that copy inputs which could lie inside their output, with the reason. `recomputed`: the
    operators that run again for a budget. `advised` are other ways to plan, each planned. `layers` have the
    work and the bytes at the peak, where names of operators are paths. `transfers` say what lies in each of several
    memories, and what it costs; empty for one arena.
    Where operators may run at once (`parallel`), there is no tick of the peak: `peak_tick` is the one in which the last
    of the tensors that may be alive at once is written. Without `reuse` no bytes are reused, and all tensors are alive
    in each tick.
    """

    model: str
    arena_bytes: int
    lower_bound: int
    bound_reason: str
    status: str
    strategy: str
    parallel: str
    reuse: bool
    last_tick: int
    peak_tick: int
    peak_operator: str
    peak_kind: str
    peak_bytes: int
    arena_without_workspace: int
    parts: tuple[ArenaPart, ...]
    alive: tuple[AliveTensor, ...]
    other_peak: OtherPeak
    refused: tuple[Forward, ...]
    not_nested: tuple[NotNested, ...]
    recomputed: tuple[Recomputed, ...]
    advised: Alternatives
    layers: tuple[Layer, ...]
    transfers: tuple[Transfers, ...]

    def __repr__(self) -> str:
        """Returns one line; `print` shows the explanation."""
        return f"<explanation of plan {self.model!r}>"

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """Returns the explanation as text, with the `most` largest tensors at the peak."""
        paragraphs = _made_of(self), _memories(self), _layers(self, most), _peak(self, most), _lower(self)
        more = paragraphs if self.arena_bytes else ()
        sections = (_size(self), *more)
        return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"

    def __str__(self) -> str:
        return self.text()


def explain(plan: PlacedPlan, find_alternatives: FindAlternatives) -> Explanation:
    """Explains the size of a plan's arena, and plans the network in other ways by `find_alternatives`."""
    totals, accesses = report(plan), accesses_of(plan)
    tick, chunks = peak_chunks(plan)
    alive = tuple(alive_at(accesses, chunk, tick) for chunk in chunks.tolist())
    return Explanation(
        model=totals.model,
        arena_bytes=totals.arena_bytes,
        lower_bound=totals.lower_bound,
        bound_reason=plan.plan.bound.reason,
        status=totals.status,
        strategy=totals.strategy,
        parallel=totals.parallel,
        reuse=plan.options.reuse,
        last_tick=accesses.last_tick,
        peak_tick=tick,
        peak_operator=totals.peak_operator,
        peak_kind=totals.peak_kind,
        peak_bytes=totals.peak_bytes,
        arena_without_workspace=_without_workspace(totals, alive),
        parts=parts(totals, alive),
        alive=alive,
        other_peak=other_peak(plan, chunks),
        refused=_refused(accesses, tuple(a.chunk for a in alive)),
        not_nested=plan.lowered.not_nested,
        recomputed=plan.recomputed,
        advised=find_alternatives(plan),
        layers=totals.layers,
        transfers=totals.transfers,
    )


def _without_workspace(totals: Report, alive: tuple[AliveTensor, ...]) -> int:
    """Returns the bytes of the arena if kernels needed no workspace; unchanged where none is alive at the peak."""
    return totals.arena_without_workspace if any(a.role == "workspace" for a in alive) else totals.arena_bytes


def _refused(accesses: Accesses, chunks: tuple[int, ...]) -> tuple[Forward, ...]:
    """Returns the overwrites that are declared, but not taken, for tensors at the peak that overwrite nothing."""
    declared = [f for f in forwards_into(accesses, chunks) if f.output_bytes]
    in_place = {f.output for f in declared if f.reason == TAKEN}
    own = {v.name for v in accesses.values if not v.is_view}
    return measured(accesses.plan, [f for f in declared if f.output not in in_place and f.output in own])


def _size(explanation: Explanation) -> list[str]:
    """Returns the first paragraph: the size of the arena, its reason, and what is proved of it."""
    size = explanation.arena_bytes
    arena = f"{shown(explanation.model)}: the arena has {format_bytes(size)} ({size} bytes)"
    if not explanation.arena_bytes:
        return [f"{arena}: nothing is computed that needs any."]
    where = operator(explanation.peak_operator, explanation.peak_kind)
    when = f"tick {explanation.peak_tick} of {explanation.last_tick}, at {where}"
    share = f"{format_bytes(explanation.peak_bytes)} in {counted(len(explanation.alive), 'tensor')}"
    if not explanation.reuse:
        why = f"because no bytes are reused: {share} stay from the first tick to the last"
        return [f"{arena}, {why}.", _proof(explanation), *_again(explanation)]
    mostly = explanation.peak_bytes >= _MOSTLY * explanation.arena_bytes
    why = f"because {share}" if mostly else f"though no more than {share}"
    if explanation.parallel:
        why += f" may be alive at once where operators run at once (the last of them is written in {when})"
    else:
        why += f" are alive in {when}" if mostly else f" are alive at once, in {when}"
    return [f"{arena}, {why}.", _proof(explanation), *_again(explanation)]


def _proof(explanation: Explanation) -> str:
    excess = explanation.arena_bytes - explanation.lower_bound
    order = f"with parallel={explanation.parallel!r}" if explanation.parallel else "in this order"
    if explanation.status == Status.OPTIMAL:
        return f"Proved: these calls, {order} and with these overwrites, fit in no smaller arena.{_reason(explanation)}"
    return (
        f"No arena below {format_bytes(explanation.lower_bound)} is possible for these calls {order}, so better "
        f"addresses would save {format_bytes(excess)} at most ({excess / explanation.arena_bytes:.1%})."
        f"{_reason(explanation)}"
    )


def _reason(explanation: Explanation) -> str:
    """Returns the sentence that says what proves the lower bound; nothing for a plan that was read from a file."""
    return f" The bound is proved by: {explanation.bound_reason}." if explanation.bound_reason else ""


def _again(explanation: Explanation) -> list[str]:
    """Returns a sentence for each budget that operators run again to keep within."""
    return [
        f"Kept within the budget: {again.text}; without it, the arena has {format_bytes(again.plain_bytes)}."
        for again in explanation.recomputed
    ]


def _made_of(explanation: Explanation) -> list[str]:
    rows = [_part_row(part) for part in explanation.parts if part.bytes]
    return ["What the arena holds then:", *(f"  {line}" for line in in_columns(rows, {0, 1}))]


def _memories(explanation: Explanation) -> list[str]:
    """Returns what lies in each of several memories, what is alive there at the peak, and what transfers take."""
    alive = Counter[str]()
    for tensor in explanation.alive:
        alive[tensor.memory] += tensor.bytes + tensor.padding
    return [
        line
        for transfers in explanation.transfers
        for line in (
            "The bytes alive then by memory: "
            + ", ".join(f"{format_bytes(alive[m.name])} in {m.name}" for m in transfers.memories)
            + ".",
            *(f"  {line}" for line in memory_table((transfers,))),
            "  --tensor NAME says why a tensor lies in its memory",
        )
    ]


def _layers(explanation: Explanation, most: int) -> list[str]:
    layers = [evolve(layer, name=shown(layer.name)) for layer in explanation.layers]
    return [line.capitalize() if i == 0 else line for i, line in enumerate(layer_table(layers, most))]


def _part_row(part: ArenaPart) -> tuple[str, str, str]:
    names = {"padding": "padding behind tensors", "alignment": "lost to alignment", "fragmentation": "other holes"}
    what = names.get(part.what, f"{part.what}: {counted(part.tensors, 'tensor')}")
    return format_bytes(part.bytes), f"{part.share:.1%}", what


def _peak(explanation: Explanation, most: int) -> list[str]:
    lines = ["Tensors alive then, and why:"]
    at_once = bool(explanation.parallel) or not explanation.reuse
    for alive in explanation.alive[:most]:
        size = format_bytes(alive.bytes + alive.padding)
        where = f", in {alive.memory}" if alive.memory else ""
        lines.append(f"  {size:>11}  {shown(alive.tensor)}, {shape(alive.shape, alive.dtype)}{where}")
        lines.append(f"               {why_alive(alive, explanation.peak_tick, at_once)}")
    rest = explanation.alive[most:]
    if rest:
        size = format_bytes(sum(a.bytes + a.padding for a in rest))
        lines.append(f"  {size:>11}  in {counted(len(rest), 'smaller one')} (--top {len(explanation.alive)} shows all)")
    return [*lines, *_other(explanation)]


def _other(explanation: Explanation) -> Iterator[str]:
    other = explanation.other_peak
    if not other.bytes or 2 * other.bytes < explanation.arena_bytes:
        return  # a bound far below the arena says nothing
    text = f"Without any of these, {format_bytes(other.bytes)} are alive in tick {other.tick}, at "
    text += operator(other.operator, other.kind)
    if other.most_saved:
        yield f"{text}: what is done to these alone saves {format_bytes(other.most_saved)} at most."
    else:
        yield f"{text}, too: what is done to these alone saves nothing."


def _lower(explanation: Explanation) -> list[str]:
    lines = ["What would make it smaller (each was planned):"]
    worth = explanation.arena_bytes * _HARDLY
    useful = sorted((w for w in explanation.advised.tried if w.saves > worth), key=lambda w: -w.saves)
    rows = [
        (f"-{format_bytes(w.saves)}", f"{-w.saves / explanation.arena_bytes:.1%}", w.what, f"[{w.how}]", w.note)
        for w in useful
    ]
    lines += [f"  {line}" for line in in_columns(rows, {0, 1})] if rows else ["  nothing that was tried"]
    hardly = any(0 < w.saves <= worth for w in explanation.advised.tried)
    useless = [_useless(w) for w in explanation.advised.tried if w.saves <= worth]
    if useless:
        lines.append(f"No smaller{', or by less than 0.1 %' if hardly else ''}: {'; '.join(useless)}.")
    lines += [f"Not tried: {text}." for text in explanation.advised.left_out]
    return [*lines, *_scratch(explanation), *_overwrites(explanation), *_copied(explanation)]


def _useless(tried: Alternative) -> str:
    """Returns an alternative that saves too little, in words, with the proof if there is one."""
    return f"{tried.what} ({tried.note})" if tried.note.startswith("proved") else tried.what


def _scratch(explanation: Explanation) -> Iterator[str]:
    saves = explanation.arena_bytes - explanation.arena_without_workspace
    if saves > 0:
        yield f"If kernels needed no workspace, the arena would be at least {format_bytes(saves)} smaller."


def _overwrites(explanation: Explanation) -> Iterator[str]:
    if explanation.refused:
        yield "Overwrites that operators allow, and that are not taken for tensors at the peak:"
    for forward in explanation.refused[:_FEW]:
        yield (
            f"  {shown(forward.output)} ({format_bytes(forward.output_bytes)}) is not written over "
            f"{shown(forward.input)}: {why_not(forward)}{saved(forward)}"
        )
    if len(explanation.refused) > _FEW:
        yield f"  ... and {len(explanation.refused) - _FEW} more (--json has all)"


def _copied(explanation: Explanation) -> Iterator[str]:
    """Yields the operators whose inputs are copied into their output, and why they are not computed there."""
    if explanation.not_nested:
        yield "Inputs that are copied, and not computed inside the output of:"
    for copied in explanation.not_nested[:_FEW]:
        yield f"  {shown(copied.operator)}: {copied.reason}"
    if len(explanation.not_nested) > _FEW:
        yield f"  ... and {len(explanation.not_nested) - _FEW} more (--json has all)"
