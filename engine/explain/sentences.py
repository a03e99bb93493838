"""Sentences about tensors and overwrites."""

from collections.abc import Sequence

from allocator.derive.overwrites import Refusal
from engine.explain.accesses import Use
from engine.explain.alive import FED, HELD, READ, SCRATCH, AliveTensor
from engine.explain.names import shown
from engine.explain.refusals import NOT_MEASURED, OFF, TAKEN, Forward
from engine.lower.calls import Role
from engine.lower.overwrite_rules import OverwriteRule
from engine.text.plurals import agreed, counted
from engine.text.units import format_bytes

_MOST_NAMED = 3
"""Readers that are named in one sentence."""


def ticks(count: int) -> str:
    """So many of them."""
    return counted(count, "tick")


def operator(name: str, kind: str) -> str:
    """An operator with its kind, where the name does not say it."""
    name = shown(name)
    return name if not kind or kind in name else f"{name} ({kind})"


def shape(dims: Sequence[int], dtype: str) -> str:
    """Such as 1x64x56x56 float32."""
    return f"{'x'.join(map(str, dims)) or 'scalar'} {dtype}"


def readers(uses: Sequence[Use]) -> str:
    """The first few of them by name, with the ticks in which they read."""
    found = list(dict.fromkeys((u.operator, u.kind, u.tick) for u in uses))
    named = ", ".join(f"{operator(name, kind)} in tick {tick}" for name, kind, tick in found[:_MOST_NAMED])
    return named if len(found) <= _MOST_NAMED else f"{named} and {len(found) - _MOST_NAMED} more"


def why_alive(alive: AliveTensor, tick: int, at_once: bool) -> str:
    """Why a tensor is there at the peak. Where operators run at once, or nothing is given back, no tick is the reason:
    there is only a first and a last one (`at_once`).
    """
    told = [_origin(alive, tick, at_once)]
    if alive.joined:
        told.append(agreed(alive.joined, "tensor", "is computed straight inside it", "are computed straight inside it"))
    told += _at_once(alive) if at_once else _now_and_later(alive, tick)
    return "; ".join(told)


def _origin(alive: AliveTensor, tick: int, at_once: bool) -> str:
    if alive.role == Role.INPUT.value and not alive.written:
        return "an input, fed before anything runs"
    if alive.role == Role.PARAMETER.value and not alive.written:
        return "a parameter, there from run to run"
    by = operator(alive.operator, alive.kind)
    if alive.parameter:
        return f"what parameter {shown(alive.parameter)} holds after the run, written by {by} in tick {alive.written}"
    if alive.role == Role.WORKSPACE.value:
        now = alive.written == tick and not at_once
        return f"scratch space of {by}, for {'this tick' if now else f'tick {alive.written}'} alone"
    if alive.written == tick and not at_once:
        return "written now"
    return f"written by {by} in tick {alive.written}"


def _at_once(alive: AliveTensor) -> list[str]:
    if alive.fetched:
        return [_stays(alive)]
    if alive.role == Role.WORKSPACE.value:
        return []
    return [f"read last by {readers(alive.last)}"] if alive.last else ["read by nobody"]


def _now_and_later(alive: AliveTensor, tick: int) -> list[str]:
    told = ["read now"] if alive.need == READ else []
    if alive.need == HELD:
        told.append("not needed now")
    if alive.taker and alive.end == tick + 1:
        return [*told, f"{shown(alive.taker)} is written over it now"]
    if alive.fetched:
        return [*told, _held_before(alive) + _stays(alive)]
    if alive.later_readers:
        return [*told, f"held for {_held_for(alive)}"]
    if alive.need in (READ, FED):
        return [*told, "needed no longer after this"]
    return told if alive.need == SCRATCH or alive.last else [*told, "read by nobody"]


def _held_for(alive: AliveTensor) -> str:
    first, last = alive.next[0], alive.last[0]
    text = f"{operator(first.operator, first.kind)} ({ticks(alive.wait)} later)"
    if last.tick != first.tick:
        between = alive.later_readers - 2
        more = f", {between} more" if between else ""
        text += f"{more} and {operator(last.operator, last.kind)} ({ticks(last.tick - first.tick + alive.wait)} later)"
    return text + _by_view(alive)


def _by_view(alive: AliveTensor) -> str:
    name = alive.last[0].tensor
    return "" if name == alive.tensor else f" (which reads it as {shown(name)})"


def _held_before(alive: AliveTensor) -> str:
    first = alive.next[0]
    if alive.later_readers < 2:
        return ""
    return f"held for {operator(first.operator, first.kind)} ({ticks(alive.wait)} later) and on to the end: "


def _stays(alive: AliveTensor) -> str:
    if alive.parameter:
        return "it stays from run to run"
    what = "needed by later stages" if alive.last[0].is_handed else "an output"
    name = alive.last[0].tensor
    return f"{what}, so it stays to the end{'' if name == alive.tensor else f' (as {shown(name)})'}"


def why_not(forward: Forward) -> str:
    """What came of an overwrite that an operator allows, from the word "because" on."""
    reason, given = forward.reason, shown(forward.input)
    if reason in _KNOWN:
        return _KNOWN[reason].format(input=given, output=shown(forward.output), other=shown(forward.other))
    if reason == Refusal.LATER.value:
        return f"{given} is {_used_later(forward.readers)}"
    if reason == Refusal.OUTSIDE.value:
        return (
            f"{shown(forward.output)} has {format_bytes(forward.output_bytes)} and does not fit into the "
            f"{format_bytes(forward.input_bytes)} of {given}"
        )
    names = ", ".join(dict.fromkeys(shown(u.tensor) for u in forward.readers))
    return f"the operator reads the same bytes in another place too{f', as {names}' if names else ''}"


def _used_later(uses: Sequence[Use]) -> str:
    """By operators, or in the end alone."""
    if not all(u.is_fetched or u.is_handed for u in uses):
        return f"read later, by {readers(uses)}"
    what = "kept" if not uses else "needed by later stages" if uses[0].is_handed else "an output"
    return f"{what}, so it must be there at the end"


_KNOWN = {
    TAKEN: "it is",
    OFF: "overwrites are switched off",
    Refusal.EMPTY.value: "there are no bytes to write",
    Refusal.PROTECTED.value: "{input} is never to be overwritten",
    Refusal.UNSAFE.value: "operators run at once, and others may still use {input} then",
    Refusal.ELSEWHERE.value: "{output} is written over {other} instead",
    Refusal.GIVEN.value: "{other} is written over {input} instead",
    OverwriteRule.MISALIGNED.value: "{input} does not begin where an element of {output} may",
    OverwriteRule.CONSTANT.value: "{input} is a constant, which stays as it is",
    OverwriteRule.CALLERS.value: "one of the two is an array of the caller's",
    OverwriteRule.STRIDED.value: "{input} is a view with holes, or in another order than its bytes",
    OverwriteRule.PARAMETER.value: "{output} is the next value of a parameter, and goes there",
    OverwriteRule.NESTED.value: "{output} is computed inside {other}",
}


def saved(forward: Forward) -> str:
    """What the overwrite would have won if nothing had been in its way, where that was measured."""
    if forward.saves == NOT_MEASURED:
        return ""
    if not forward.saves:
        return "; if it were not, the arena would be as large"
    return f"; if it were not, the arena would be {format_bytes(forward.saves)} smaller"
