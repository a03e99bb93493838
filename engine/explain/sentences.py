"""Sentences about tensors and overwrites."""

from collections.abc import Sequence

from allocator.overwrites import Refusal
from engine.calls import Role
from engine.explain.alive import FED, HELD, READ, SCRATCH, Alive
from engine.explain.anatomy import Use
from engine.explain.names import shown
from engine.explain.refusals import NOT_MEASURED, OFF, TAKEN, Forward
from engine.objections import Objection
from engine.units import format_bytes

_MOST_NAMED = 3
"""Readers that are named in one sentence."""


def counted(count: int, what: str) -> str:
    """So many of them."""
    return f"{count} {what}{'' if count == 1 else 's'}"


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


def why_alive(alive: Alive, tick: int, at_once: bool) -> str:
    """Why a tensor is there at the peak; where operators run at once there is no such tick, only a first and a last."""
    told = [_origin(alive, tick, at_once)]
    if alive.joined:
        told.append(f"{alive.joined} tensors are computed straight inside it")
    told += _at_once(alive) if at_once else _now_and_later(alive, tick)
    return "; ".join(told)


def _origin(alive: Alive, tick: int, at_once: bool) -> str:
    if alive.role == Role.INPUT.value and not alive.written:
        return "an input, fed before anything runs"
    if alive.role == Role.PARAMETER.value and not alive.written:
        return "a parameter, there from run to run"
    by = operator(alive.operator, alive.kind)
    if alive.parameter:
        return f"what parameter {shown(alive.parameter)} holds after the run, written by {by} in tick {alive.written}"
    if alive.need == SCRATCH:
        return f"scratch space of {by}, for this tick alone"
    if alive.written == tick and not at_once:
        return "written now"
    return f"written by {by} in tick {alive.written}"


def _at_once(alive: Alive) -> list[str]:
    if alive.fetched:
        return [_stays(alive)]
    return [f"read last by {readers(alive.last)}"] if alive.last else ["read by nobody"]


def _now_and_later(alive: Alive, tick: int) -> list[str]:
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


def _held_for(alive: Alive) -> str:
    first, last = alive.next[0], alive.last[0]
    text = f"{operator(first.operator, first.kind)} ({ticks(alive.wait)} later)"
    if last.tick != first.tick:
        between = alive.later_readers - 2
        more = f", {between} more" if between else ""
        text += f"{more} and {operator(last.operator, last.kind)} ({ticks(last.tick - first.tick + alive.wait)} later)"
    return text + _by_view(alive)


def _by_view(alive: Alive) -> str:
    name = alive.last[0].tensor
    return "" if name == alive.tensor else f" (which reads it as {shown(name)})"


def _held_before(alive: Alive) -> str:
    first = alive.next[0]
    if alive.later_readers < 2:
        return ""
    return f"held for {operator(first.operator, first.kind)} ({ticks(alive.wait)} later) and on to the end: "


def _stays(alive: Alive) -> str:
    if alive.parameter:
        return "it stays from run to run"
    return f"an output, so it stays to the end{_by_view(alive)}"


def why_not(forward: Forward) -> str:
    """What came of an overwrite that an operator allows, from the word "because" on."""
    reason, given = forward.reason, shown(forward.input)
    if reason in _KNOWN:
        return _KNOWN[reason].format(input=given, output=shown(forward.output), other=shown(forward.other))
    if reason == Refusal.LATER.value:
        if forward.readers and all(not u.kind and u.operator == "fetch" for u in forward.readers):
            return f"{given} is {'an output' if forward.readers else 'kept'}, so it must be there at the end"
        return f"{given} is read later, by {readers(forward.readers)}"
    if reason == Refusal.OUTSIDE.value:
        return (
            f"{shown(forward.output)} has {format_bytes(forward.output_bytes)} and does not fit into the "
            f"{format_bytes(forward.input_bytes)} of {given}"
        )
    names = ", ".join(dict.fromkeys(shown(u.tensor) for u in forward.readers))
    return f"the operator reads the same bytes in another place too{f', as {names}' if names else ''}"


_KNOWN = {
    TAKEN: "it is",
    OFF: "overwrites are switched off",
    Refusal.EMPTY.value: "there are no bytes to write",
    Refusal.PROTECTED.value: "{input} is never to be overwritten",
    Refusal.UNSAFE.value: "operators run at once, and others may still use {input} then",
    Refusal.ELSEWHERE.value: "{output} is written over {other} instead",
    Refusal.GIVEN.value: "{other} is written over {input} instead",
    Objection.MISALIGNED.value: "{input} does not begin where an element of {output} may",
    Objection.CONSTANT.value: "{input} is a constant, which stays as it is",
    Objection.CALLERS.value: "one of the two is an array of the caller's",
    Objection.STRIDED.value: "{input} is a view with holes, or in another order than its bytes",
    Objection.PARAMETER.value: "{output} is the next value of a parameter, and goes there",
    Objection.NESTED.value: "{output} is computed inside {other}",
}


def saved(forward: Forward) -> str:
    """What the overwrite would have won if nothing had been in its way, where that was measured."""
    if forward.saves == NOT_MEASURED:
        return ""
    if not forward.saves:
        return "; if it were not, the arena would be as large"
    return f"; if it were not, the arena would be {format_bytes(forward.saves)} smaller"
