"""Faults on the way from calls to chunks: lifetimes, views, overwrites."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve

import ops
from allocator.derive import chunks, overwrites
from allocator.derive.chunks import Chunks
from allocator.derive.lifetimes import Lifetimes, lifetimes
from allocator.derive.overwrites import Extents, Refusal, Taken
from allocator.derive.sharing import share
from allocator.steps import Program, Step
from engine import Graph
from engine.lower import lowering, steps
from engine.lower.calls import Lowered
from engine.lower.overwrite_rules import OverwriteRule
from engine.planning import planner
from tests.helpers.faults.base import DATA_FLOW, PROBLEM, Fault, Plant, after, both, constant, patched
from tests.helpers.faults.work import planned, planning, training


def _lives(change: Callable[[Any, Any], tuple[Any, Any]]) -> Plant:
    def changed(life: Lifetimes, *_: object) -> Lifetimes:
        return Lifetimes(*change(life.begin.copy(), life.end.copy()))

    return patched(chunks, "lifetimes", after(changed))


def _program(change: Callable[[Program], Program]) -> Plant:
    return patched(planner, "to_program", after(lambda program, *_: change(program)))


def _each_step(change: Callable[[Step], Step]) -> Plant:
    return _program(lambda program: evolve(program, steps=tuple(map(change, program.steps))))


def _last_step(change: Callable[[Step], Step]) -> Plant:
    return _program(lambda program: evolve(program, steps=(*program.steps[:-1], change(program.steps[-1]))))


def _one_member(_: Chunks, program: Program) -> Chunks:
    """Returns chunks with the lives of the values that own them, without those of views."""
    life, sharing = lifetimes(program), share(program)
    roots = sharing.roots
    sizes = np.array(program.sizes, np.int64)[roots]
    return Chunks(sharing.chunk_of, sharing.offset, life.begin[roots], life.end[roots], sizes)


def _one_tick_more(own: Chunks, program: Program, **_: object) -> Chunks:
    return evolve(own, end=np.minimum(own.end + 1, len(program.steps)))


def _smaller(program: Program) -> Program:
    written = {value for step in program.steps for value in step.writes}
    viewed = {view.src for step in program.steps for view in step.views}
    shorter = written - viewed
    return evolve(program, sizes=tuple(n - 4 if v in shorter and n > 4 else n for v, n in enumerate(program.sizes)))


def _no_workspace(program: Program, lowered: Lowered, ids: dict[int, int]) -> Program:
    without = {ids[v] for call in lowered.calls for v in call.workspace}
    return evolve(program, sizes=tuple(0 if v in without else n for v, n in enumerate(program.sizes)))


def _further(taken: tuple[Taken, ...], _: Program, extents: Extents, *__: object) -> tuple[Taken, ...]:
    def room(each: Taken) -> int:
        return extents.size[each.dest] - extents.size[each.src] - each.offset

    return tuple(Taken(t.src, t.dest, t.offset + 4 if room(t) >= 4 else t.offset, t.required) for t in taken)


def _all_candidates(_: object, judged: Any, __: Extents) -> tuple[Taken, ...]:
    return tuple(j.candidate for j in judged if not j.refusal)


def _without(*rules: object) -> Callable[[Any], Callable[..., Any]]:
    """Returns a change to a function that finds a broken rule: it overlooks these."""
    return after(lambda rule, *_: type(rule)("") if rule in rules else rule)


def square() -> Graph:
    """Returns an operator that reads one tensor twice, of which it may overwrite the first operand only."""
    graph = Graph("square")
    h = ops.relu(graph.input("x", (8, 8)))
    graph.output(ops.rms_norm(h, h, axis=0), "y")
    return graph


def turned() -> Graph:
    """Returns a function of a transposed tensor."""
    graph = Graph("turned")
    graph.output(ops.tanh(ops.transpose(ops.neg(graph.input("x", (8, 6))))), "y")
    return graph


_CALLS = "engine/lower/lowering.py"
_STEPS = "engine/lower/steps.py"
_LIVES = "allocator/derive/lifetimes.py"
_CHUNKS = "allocator/derive/chunks.py"
_TAKEN = "allocator/derive/overwrites.py"

MEMORY = (
    Fault(
        "a lifetime ends one tick early",
        _LIVES,
        DATA_FLOW,
        _lives(lambda b, e: (b, np.maximum(b + 1, e - 1))),
        planned(),
    ),
    Fault(
        "a lifetime begins one tick late",
        _LIVES,
        DATA_FLOW,
        _lives(lambda b, e: (np.minimum(b + 1, e - 1), e)),
        planned(overwrite=False),
    ),
    Fault("reads extend no lifetime", _LIVES, DATA_FLOW, _lives(lambda b, _: (b, b + 1)), planned(overwrite=False)),
    Fault(
        "a chunk lives one tick too long", _CHUNKS, PROBLEM, patched(chunks, "derive", after(_one_tick_more)), planned()
    ),
    Fault("outputs are not kept to the end", _STEPS, DATA_FLOW, _last_step(lambda _: Step()), planned()),
    Fault(
        "only the first operand counts as read",
        _STEPS,
        DATA_FLOW,
        _each_step(lambda s: evolve(s, reads=s.reads[:1], overwrites=())),
        planned(),
    ),
    Fault(
        "a view has bytes of its own",
        _STEPS,
        DATA_FLOW,
        _each_step(lambda s: evolve(s, writes=s.writes + tuple(v.out for v in s.views), views=())),
        planned(),
    ),
    Fault(
        "a chunk lives as long as its owner, not as its views",
        _CHUNKS,
        DATA_FLOW,
        patched(chunks, "_without_overwrites", after(_one_member)),
        planned(overwrite=False),
    ),
    Fault("a tensor has one element less", _STEPS, DATA_FLOW, _program(_smaller), planned(alignment=1)),
    Fault(
        "temporaries have no bytes", _STEPS, DATA_FLOW, patched(planner, "to_program", after(_no_workspace)), planned()
    ),
    Fault(
        "a parameter is not kept to the end",
        _STEPS,
        DATA_FLOW,
        _last_step(lambda s: evolve(s, reads=s.reads[:1])),
        planning(training, overwrite=False),
    ),
    Fault(
        "the update of a parameter need not lie where it lies",
        _STEPS,
        DATA_FLOW,
        patched(steps, "is_update", constant(False)),
        planning(training, overwrite=False),
    ),
    Fault(
        "an overwrite of what others still read",
        _TAKEN,
        PROBLEM,
        patched(overwrites, "_refusal", _without(Refusal.LATER)),
        planned(),
    ),
    Fault(
        "a value overwrites two others",
        _TAKEN,
        PROBLEM,
        patched(overwrites, "_taken", after(_all_candidates)),
        planned(),
    ),
    Fault(
        "an overwrite begins one element further",
        _TAKEN,
        DATA_FLOW,
        patched(chunks, "choose_overwrites", after(_further)),
        planned(),
    ),
    Fault(
        "an overwrite of what the operator reads by another operand",
        _TAKEN,
        DATA_FLOW,
        both(
            patched(lowering, "broken_rule", _without(OverwriteRule.BESIDE)),
            patched(overwrites, "_beside", constant(Refusal.NONE)),
        ),
        planning(square),
    ),
    Fault(
        "an overwrite of an input that is not dense",
        _CALLS,
        DATA_FLOW,
        patched(lowering, "broken_rule", _without(OverwriteRule.STRIDED)),
        planning(turned, backend="numpy"),
    ),
)
