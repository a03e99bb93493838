"""Sentences about tensors, operators and overwrites, and the names that they quote."""

from collections.abc import Sequence

from allocator.derive.overwrites import Refusal
from engine.explain.accesses import Use
from engine.explain.overwrites import NOT_MEASURED, OFF, TAKEN, Forward
from engine.explain.peak import FED, HELD, READ, SCRATCH, AliveTensor
from engine.lower.calls import Role
from engine.lower.overwrite_rules import OverwriteRule
from engine.lower.roles import is_kept
from engine.text.units import agreed, counted, format_bytes

_LONGEST = 80
"""Characters of a name in a sentence; the middle of a longer one is left out."""
_MOST_NAMED = 3
"""Readers that are named in one sentence."""


def shown(name: str) -> str:
    """Returns a name as one line of printable characters, shortened in the middle where it is too long."""
    return _short("".join(c if c.isprintable() else ascii(c)[1:-1] for c in name))


def quoted(name: str) -> str:
    """Returns a name as a Python literal, shortened in the middle where it is too long."""
    return _short(repr(name))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}...{text[-17:]}"


def ticks(count: int) -> str:
    """Returns a number of ticks in words: "1 tick", "2 ticks"."""
    return counted(count, "tick")


def operator(name: str, kind: str) -> str:
    """Returns the name of an operator, with its kind where the name does not contain it."""
    name = shown(name)
    return name if not kind or kind in name else f"{name} ({kind})"


def shape(dims: Sequence[int], dtype: str) -> str:
    """Returns a shape and an element type as text, such as 1x64x56x56 float32."""
    return f"{'x'.join(map(str, dims)) or 'scalar'} {dtype}"


def readers(uses: Sequence[Use]) -> str:
    """Returns the first readers by name, with the ticks in which they read, and how many more there are."""
    distinct = list(dict.fromkeys((u.operator, u.kind, u.tick) for u in uses))
    named = ", ".join(f"{operator(name, kind)} in tick {tick}" for name, kind, tick in distinct[:_MOST_NAMED])
    return named if len(distinct) <= _MOST_NAMED else f"{named} and {len(distinct) - _MOST_NAMED} more"


def why_alive(alive: AliveTensor, tick: int, at_once: bool) -> str:
    """Returns why a tensor is alive in a tick.

    With `at_once`, operators run at once or bytes are not reused: then no single tick is the reason, and the sentence
    names the first and the last access alone.
    """
    reasons = [_origin(alive, tick, at_once)]
    if alive.joined:
        reasons.append(
            agreed(alive.joined, "tensor", "is computed directly inside it", "are computed directly inside it")
        )
    reasons += _at_once(alive) if at_once else _now_and_later(alive, tick)
    return "; ".join(reasons)


def _origin(alive: AliveTensor, tick: int, at_once: bool) -> str:
    if alive.role == Role.INPUT.value and not alive.written:
        return "an input, fed before anything runs"
    if is_kept(alive.role) and not alive.written:
        return "a parameter, kept from run to run"
    by = operator(alive.operator, alive.kind)
    if alive.parameter:
        return f"the next value of parameter {shown(alive.parameter)}, written by {by} in tick {alive.written}"
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
    return [f"read last by {readers(alive.last)}"] if alive.last else ["never read"]


def _now_and_later(alive: AliveTensor, tick: int) -> list[str]:
    reasons = ["read now"] if alive.need == READ else []
    if alive.need == HELD:
        reasons.append("not needed now")
    if alive.taker and alive.end == tick + 1:
        return [*reasons, f"{shown(alive.taker)} is written over it now"]
    if alive.fetched:
        return [*reasons, _held_before(alive) + _stays(alive)]
    if alive.later_readers:
        return [*reasons, f"held for {_held_for(alive)}"]
    if alive.need in (READ, FED):
        return [*reasons, "not needed after this"]
    return reasons if alive.need == SCRATCH or alive.last else [*reasons, "never read"]


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
        return "kept from run to run"
    what = "needed by later stages" if alive.last[0].is_handed_over else "an output"
    name = alive.last[0].tensor
    return f"{what}, so it stays to the end{'' if name == alive.tensor else f' (as {shown(name)})'}"


def why_not(forward: Forward) -> str:
    """Returns why an overwrite that an operator allows is not taken, as a clause that follows "because"."""
    reason, overwritten = forward.reason, shown(forward.input)
    if reason in _REASONS:
        return _REASONS[reason].format(input=overwritten, output=shown(forward.output), other=shown(forward.other))
    if reason == Refusal.LATER.value:
        return f"{overwritten} is {_used_later(forward.readers)}"
    if reason == Refusal.OUTSIDE.value:
        return (
            f"{shown(forward.output)} has {format_bytes(forward.output_bytes)} and does not fit into the "
            f"{format_bytes(forward.input_bytes)} of {overwritten}"
        )
    names = ", ".join(dict.fromkeys(shown(u.tensor) for u in forward.readers))
    return f"the operator reads the same bytes in another place too{f', as {names}' if names else ''}"


def outcome(forward: Forward, verb: str) -> str:
    """Returns whether an overwrite that an operator allows is taken, and why not: "it is", "it does not, as ..."."""
    return f"it {verb}" if forward.is_taken else f"it {verb} not, as {why_not(forward)}"


def _used_later(uses: Sequence[Use]) -> str:
    """Returns how bytes are used later: by operators, or only at the end."""
    if not all(u.is_fetched or u.is_handed_over for u in uses):
        return f"read later, by {readers(uses)}"
    what = "kept" if not uses else "needed by later stages" if uses[0].is_handed_over else "an output"
    return f"{what}, so it must be there at the end"


_REASONS = {
    TAKEN: "it is",
    OFF: "overwrites are switched off",
    Refusal.EMPTY.value: "there are no bytes to write",
    Refusal.PROTECTED.value: "{input} must never be overwritten",
    Refusal.UNSAFE.value: "operators run at once, and others may still use {input} then",
    Refusal.ELSEWHERE.value: "{output} is written over {other} instead",
    Refusal.GIVEN.value: "{other} is written over {input} instead",
    OverwriteRule.MISALIGNED.value: "{input} does not begin where an element of {output} may",
    OverwriteRule.CONSTANT.value: "{input} is a constant and must not change",
    OverwriteRule.CALLERS.value: "one of the two is an array of the caller",
    OverwriteRule.STRIDED.value: "{input} is a view with gaps, or in another order than its bytes",
    OverwriteRule.PARAMETER.value: "{output} is the next value of a parameter, and goes there",
    OverwriteRule.NESTED.value: "{output} is computed inside {other}",
}


def saved(forward: Forward) -> str:
    """Returns what the overwrite would have saved if nothing had prevented it; empty where that was not measured."""
    if forward.saves == NOT_MEASURED:
        return ""
    if not forward.saves:
        return "; with the overwrite, the arena would be as large"
    return f"; with the overwrite, the arena would be {format_bytes(forward.saves)} smaller"
