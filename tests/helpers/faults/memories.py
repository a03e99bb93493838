"""Faults in what lies in several memories: weights, rules, and what cannot be written."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve

from engine.lower.calls import Call, Lowered, Role, is_again
from engine.planning import memories, planner
from engine.planning.memories import Contents
from engine.planning.placed import Place
from tests.helpers.faults.base import DATA_FLOW, MEMORIES, Fault, Plant, after, patched
from tests.helpers.faults.work import branches, planning, training
from tests.helpers.graphs.waiting import BOARD, rectified, waiting


def _contents(change: Callable[[Contents], Contents]) -> Plant:
    return patched(memories, "contents_of", after(lambda contents, *_: change(contents)))


def _runs(change: Callable[[Lowered], Lowered]) -> Plant:
    """Returns what lets other calls run than those that were planned."""
    return patched(planner, "PlacedPlan", after(lambda placed, *_: evolve(placed, lowered=change(placed.lowered))))


def _without_a_weight(contents: Contents) -> Contents:
    row_of = {value: row for value, row in contents.row_of.items() if row != contents.chunks}
    return evolve(contents, row_of=row_of)


def _half_as_large(contents: Contents) -> Contents:
    return evolve(contents, sizes=contents.sizes // 2)


def _anywhere(contents: Contents) -> Contents:
    return evolve(contents, allowed=np.ones_like(contents.allowed))


def _moved_by(step: int) -> Callable[[Lowered], Lowered]:
    """Returns what lets each copy run so many places later, or with a step below 0 earlier."""

    def change(lowered: Lowered) -> Lowered:
        order = list(lowered.instructions)
        for call in lowered.calls:
            if not call.operators:
                at = order.index(call)
                order.insert(max(at + step, 0), order.pop(at))
        return evolve(lowered, instructions=tuple(evolve(s, tick=i) for i, s in enumerate(order, 1)))

    return change


def _runs_again_by(step: int) -> Callable[[Lowered], Lowered]:
    """Returns what lets each call that computes a tensor again run so many places later."""

    def change(lowered: Lowered) -> Lowered:
        order = list(lowered.instructions)
        for call in lowered.calls:
            if is_again(lowered, call):
                at = order.index(call)
                order.insert(at + step, order.pop(at))
        return evolve(lowered, instructions=tuple(s.at(i) for i, s in enumerate(order, 1)))

    return change


def _of_another(lowered: Lowered) -> Lowered:
    """Returns the calls, of which those that run again read what they computed before."""
    first = {call.operators: call.outputs[0] for call in reversed(lowered.calls)}
    changed = (
        evolve(s, inputs=(first[s.operators],)) if isinstance(s, Call) and is_again(lowered, s) else s
        for s in lowered.instructions
    )
    return evolve(lowered, instructions=tuple(changed))


def _as_others(lowered: Lowered) -> Lowered:
    """Returns the calls, with what is computed again as if it were computed for the first time."""
    values = (evolve(v, role=Role.ACTIVATION) if v.role is Role.AGAIN else v for v in lowered.values)
    return evolve(lowered, values=tuple(values))


def _not_again(lowered: Lowered) -> Lowered:
    """Returns the calls, which read a tensor where it was before it was dropped."""
    first = {call.operators: call.outputs[0] for call in reversed(lowered.calls)}
    was = {call.outputs[0]: first[call.operators] for call in lowered.calls if is_again(lowered, call)}
    reading = tuple(evolve(s, inputs=tuple(was.get(v, v) for v in s.inputs)) for s in lowered.instructions)
    return evolve(lowered, instructions=reading)


def _where_they_were(places: tuple[Place, ...], lowered: Lowered, *_: object) -> tuple[Place, ...]:
    """Returns the places, but with each copy where the first one of its tensor lies: in the memory that it left."""
    first: dict[str, int] = {}
    for value in lowered.values:
        first.setdefault(value.source, value.id)
    copies = {call.outputs[0] for call in lowered.calls if not call.operators}
    return tuple(places[first[lowered.values[v].source]] if v in copies else p for v, p in enumerate(places))


def _stale(lowered: Lowered) -> Lowered:
    """Returns the calls, of which those behind the last copy read the tensor as it was before the first one."""
    copies = [call for call in lowered.calls if not call.operators]
    before = {call.outputs[0]: copies[0].inputs[0] for call in copies[-1:]}
    stale = tuple(evolve(s, inputs=tuple(before.get(v, v) for v in s.inputs)) for s in lowered.instructions)
    return evolve(lowered, instructions=stale)


_WHERE = "engine/planning/memories/choose.py"
_BOARD: Any = {"memories": ["ram=1MiB,1GB/s", "rom=1MiB,5GB/s,read-only", "fast=1MiB,4GB/s"]}
_MOVES = "engine/lower/copied.py"
_MOVING = planning(waiting, memories=BOARD)
_AGAIN = planning(rectified, memories=("fast=2KiB,10GB/s", "slow=64KiB,1GB/s"), optimise=0)
_LEFT = patched(planner, "place_values", after(_where_they_were))
_RULED = planning(branches, **_BOARD, place={"inputs": "ram"})

MEMORY_FAULTS: tuple[Fault, ...] = (
    Fault("a weight lies in no memory", _WHERE, MEMORIES, _contents(_without_a_weight), _RULED),
    Fault("weights have half their bytes", _WHERE, MEMORIES, _contents(_half_as_large), _RULED),
    Fault("rules of places are not kept", _WHERE, MEMORIES, _contents(_anywhere), _RULED),
    Fault("a parameter is read-only", _WHERE, MEMORIES, _contents(_anywhere), planning(training, **_BOARD)),
    Fault("a copy comes too late", _MOVES, DATA_FLOW, _runs(_moved_by(1)), _MOVING),
    Fault("a copy is made before its tensor", _MOVES, DATA_FLOW, _runs(_moved_by(-5)), _MOVING),
    Fault("a tensor lies in the memory that it left", _MOVES, DATA_FLOW, _LEFT, _MOVING),
    Fault("a call reads a stale copy", _MOVES, DATA_FLOW, _runs(_stale), _MOVING),
    Fault("a tensor is computed again too late", _MOVES, DATA_FLOW, _runs(_runs_again_by(1)), _AGAIN),
    Fault("a tensor is computed again from another", _MOVES, DATA_FLOW, _runs(_of_another), _AGAIN),
    Fault("a tensor is computed twice, and not again", _MOVES, DATA_FLOW, _runs(_as_others), _AGAIN),
    Fault("a tensor is read where it was dropped", _MOVES, DATA_FLOW, _runs(_not_again), _AGAIN),
)
