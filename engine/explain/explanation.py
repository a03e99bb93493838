"""Why an arena is as large as it is: the peak, who is alive there and why, and what would make it smaller."""

from collections.abc import Iterator
from typing import Any

from attrs import asdict, frozen

from allocator.problem import Status
from engine.explain.alive import AliveTensor
from engine.explain.names import shown
from engine.explain.other_peak import OtherPeak
from engine.explain.parts import ArenaPart
from engine.explain.refusals import Forward
from engine.explain.sentences import operator, saved, shape, why_alive, why_not
from engine.explain.what_if import Alternative, Alternatives
from engine.planning.recomputed import Recomputed
from engine.text.plurals import counted
from engine.text.tables import in_columns
from engine.text.units import format_bytes

_FEW = 4
"""Overwrites that are told of; the JSON has all."""
_HARDLY = 0.001
"""Of the arena, that is not worth a line."""
_MOSTLY = 0.9
"""Of the arena, that what is alive at the peak must have to be the reason for its size."""


@frozen(eq=False)
class Explanation:
    """Sizes in bytes. The `parts` add up to the arena; `alive` are the tensors at the peak, the largest first.

    `last_tick` is the one in which outputs are fetched. `refused` are overwrites that would have made a tensor at the
    peak cost nothing, and why they are not taken, the largest first. `recomputed`: what runs again for a budget.
    `advised` are other ways to plan, each measured.
    Where operators may run at once (`parallel`), there is no tick of the peak: `peak_tick` is the one in which the last
    of the tensors that may be alive at once is written. Without `reuse` nothing is given back, and all is alive in
    each tick.
    """

    model: str
    arena_bytes: int
    lower_bound: int
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
    recomputed: tuple[Recomputed, ...]
    advised: Alternatives

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """A page for people, with the `most` largest tensors at the peak."""
        more = (_made_of(self), _peak(self, most), _lower(self)) if self.arena_bytes else ()
        sections = (_size(self), *more)
        return "\n\n".join("\n".join(lines) for lines in sections) + "\n"

    def __str__(self) -> str:
        return self.text()


def _size(found: Explanation) -> list[str]:
    """The first paragraph: how large, why, and whether it must be."""
    arena = f"{shown(found.model)}: the arena has {format_bytes(found.arena_bytes)} ({found.arena_bytes} bytes)"
    if not found.arena_bytes:
        return [f"{arena}: nothing is computed that needs any."]
    where = operator(found.peak_operator, found.peak_kind)
    when = f"tick {found.peak_tick} of {found.last_tick}, at {where}"
    share = f"{format_bytes(found.peak_bytes)} in {counted(len(found.alive), 'tensor')}"
    if not found.reuse:
        why = f"because nothing is given back: {share} stay from the first tick to the last"
        return [f"{arena}, {why}.", _proof(found), *_again(found)]
    mostly = found.peak_bytes >= _MOSTLY * found.arena_bytes
    why = f"because {share}" if mostly else f"though no more than {share}"
    if found.parallel:
        why += f" may be alive at once where operators run at once (the last of them is written in {when})"
    else:
        why += f" are alive in {when}" if mostly else f" are alive at once, in {when}"
    return [f"{arena}, {why}.", _proof(found), *_again(found)]


def _proof(found: Explanation) -> str:
    excess = found.arena_bytes - found.lower_bound
    order = f"with parallel={found.parallel!r}" if found.parallel else "in this order"
    if found.status == Status.OPTIMAL:
        return f"Proved: these calls, {order} and with these overwrites, fit in no smaller arena."
    return (
        f"No arena below {format_bytes(found.lower_bound)} is possible for these calls {order}, so better "
        f"addresses would win {format_bytes(excess)} at most ({excess / found.arena_bytes:.1%})."
    )


def _again(found: Explanation) -> list[str]:
    """What runs again for the sake of a budget."""
    return [
        f"Kept within the budget: {again.told}; without it, the arena has {format_bytes(again.plain_bytes)}."
        for again in found.recomputed
    ]


def _made_of(found: Explanation) -> list[str]:
    rows = [_part_row(part) for part in found.parts if part.bytes]
    return ["What it is made of then:", *(f"  {line}" for line in in_columns(rows, {0, 1}))]


def _part_row(part: ArenaPart) -> tuple[str, str, str]:
    names = {"padding": "padding behind tensors", "alignment": "lost to alignment", "fragmentation": "other holes"}
    what = names.get(part.what, f"{part.what}: {counted(part.tensors, 'tensor')}")
    return format_bytes(part.bytes), f"{part.share:.1%}", what


def _peak(found: Explanation, most: int) -> list[str]:
    lines = ["Who is alive then, and why:"]
    for alive in found.alive[:most]:
        size = format_bytes(alive.bytes + alive.padding)
        lines.append(f"  {size:>11}  {shown(alive.tensor)}, {shape(alive.shape, alive.dtype)}")
        lines.append(f"               {why_alive(alive, found.peak_tick, bool(found.parallel) or not found.reuse)}")
    rest = found.alive[most:]
    if rest:
        size = format_bytes(sum(a.bytes + a.padding for a in rest))
        lines.append(f"  {size:>11}  in {counted(len(rest), 'smaller one')} (--top {len(found.alive)} shows all)")
    return [*lines, *_other(found)]


def _other(found: Explanation) -> Iterator[str]:
    other = found.other_peak
    if not other.bytes or 2 * other.bytes < found.arena_bytes:
        return  # a bound far below the arena says nothing
    text = f"Without any of these, {format_bytes(other.bytes)} are alive in tick {other.tick}, at "
    text += operator(other.operator, other.kind)
    if other.most_saved:
        yield f"{text}: what is done to these alone saves {format_bytes(other.most_saved)} at most."
    else:
        yield f"{text}, too: what is done to these alone saves nothing."


def _lower(found: Explanation) -> list[str]:
    lines = ["What would make it smaller (each was planned):"]
    worth = found.arena_bytes * _HARDLY
    good = sorted((w for w in found.advised.tried if w.saves > worth), key=lambda w: -w.saves)
    rows = [
        (f"-{format_bytes(w.saves)}", f"{-w.saves / found.arena_bytes:.1%}", w.what, f"[{w.how}]", w.note) for w in good
    ]
    lines += [f"  {line}" for line in in_columns(rows, {0, 1})] if rows else ["  nothing that was tried"]
    hardly = any(0 < w.saves <= worth for w in found.advised.tried)
    useless = [_useless(w) for w in found.advised.tried if w.saves <= worth]
    if useless:
        lines.append(f"No smaller{', or by less than 0.1 %' if hardly else ''}: {'; '.join(useless)}.")
    lines += [f"Not tried: {text}." for text in found.advised.left_out]
    return [*lines, *_scratch(found), *_overwrites(found)]


def _useless(tried: Alternative) -> str:
    """With the proof, if there is one."""
    return f"{tried.what} ({tried.note})" if tried.note.startswith("proved") else tried.what


def _scratch(found: Explanation) -> Iterator[str]:
    saves = found.arena_bytes - found.arena_without_workspace
    if saves > 0:
        yield f"If kernels needed no workspace, the arena would be at least {format_bytes(saves)} smaller."


def _overwrites(found: Explanation) -> Iterator[str]:
    if found.refused:
        yield "Overwrites that operators allow, and that are not taken for tensors at the peak:"
    for forward in found.refused[:_FEW]:
        yield (
            f"  {shown(forward.output)} ({format_bytes(forward.output_bytes)}) is not written over "
            f"{shown(forward.input)}: {why_not(forward)}{saved(forward)}"
        )
    if len(found.refused) > _FEW:
        yield f"  ... and {len(found.refused) - _FEW} more (--json has all)"
