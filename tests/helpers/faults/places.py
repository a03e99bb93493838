"""Faults from chunks to places: solvers, alignment, addresses, and calls that were changed behind the plan's back."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve

from allocator.problem import Problem
from allocator.solvers import greedy
from engine.lower.calls import Alias, Call, Instruction, Lowered
from engine.planning import planner, solving
from engine.planning.placed import Place, PlacedPlan
from tests.helpers.faults.base import DATA_FLOW, OFFSETS, PLACEMENT, Fault, Plant, after, patched
from tests.helpers.faults.work import branches, planned, planning


def _places(change: Callable[[Place, bool], Place]) -> Plant:
    def changed(places: tuple[Place, ...], lowered: Lowered, *_: object) -> tuple[Place, ...]:
        pairs = zip(places, lowered.values, strict=True)
        return tuple(change(place, value.is_view) for place, value in pairs)

    return patched(planner, "place_values", after(changed))


def _late(place: Place, is_view: bool) -> Place:
    layout = place.layout
    return evolve(place, layout=evolve(layout, offset=layout.offset + layout.itemsize)) if is_view else place


def _dense(place: Place, is_view: bool) -> Place:
    layout = place.layout
    strides = np.empty(layout.shape, f"V{layout.itemsize}").strides
    return evolve(place, layout=evolve(layout, strides=strides)) if is_view else place


def _calls(change: Callable[[tuple[Instruction, ...]], tuple[Instruction, ...]]) -> Plant:
    """Returns what changes the instructions of a plan that is right but for them."""

    def make(right: Any) -> Callable[..., PlacedPlan]:
        def placed(lowered: Lowered, *rest: Any) -> PlacedPlan:
            plan: PlacedPlan = right(evolve(lowered, instructions=change(lowered.instructions)), *rest)
            return plan

        return placed

    return patched(planner, "PlacedPlan", make)


def _first_operand(instruction: Instruction) -> Instruction:
    alone = isinstance(instruction, Alias) or len(instruction.inputs) < 2
    return instruction if alone else evolve(instruction, inputs=(instruction.inputs[0],) * len(instruction.inputs))


def _kernels_exchanged(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    calls = [s for s in instructions if isinstance(s, Call)]
    following = dict(zip((c.tick for c in calls), calls[1:] + calls[:1], strict=True))
    return tuple(evolve(s, kernel=following[s.tick].kernel) if isinstance(s, Call) else s for s in instructions)


def _no_temporaries(instruction: Instruction) -> Instruction:
    return evolve(instruction, workspace=()) if isinstance(instruction, Call) else instruction


def _other_constants(right: Any) -> Callable[..., PlacedPlan]:
    def placed(lowered: Lowered, *rest: Any) -> PlacedPlan:
        others = {v: a + a.dtype.type(1) for v, a in lowered.constants.items()}
        plan: PlacedPlan = right(evolve(lowered, constants=others), *rest)
        return plan

    return placed


def _solved(change: Callable[[Any, Problem], Any]) -> Plant:
    """Returns what changes the offsets of greedy strategies."""
    return patched(greedy, "place_in_order", after(lambda offset, problem, *_: change(offset.copy(), problem)))


def _shifted(offset: Any, _: Problem) -> Any:
    offset[int(offset.argmax())] -= 64
    return offset


def _not_with_its_root(offset: Any, problem: Problem) -> Any:
    offset[problem.src] += 64
    return offset


_BY_SIZE = {"strategy": "greedy_by_size"}
_CALLS = "engine/lower/lowering.py"
_CHUNKS = "allocator/derive/chunks.py"
_PLACES = "engine/planning/placed.py"
_SOLVERS = "allocator/solvers/greedy.py"
_ASKED = "engine/planning/solving.py"

PLACES = (
    Fault("a view begins one element late", _PLACES, DATA_FLOW, _places(_late), planned()),
    Fault("a view has the strides of a dense tensor", _PLACES, DATA_FLOW, _places(_dense), planned()),
    Fault(
        "views begin where their owners do",
        _PLACES,
        DATA_FLOW,
        patched(
            planner,
            "place_values",
            lambda right: (
                lambda lowered, ids, own, plan: right(
                    lowered, ids, evolve(own, offset_in_chunk=0 * own.offset_in_chunk), plan
                )
            ),
        ),
        planned(),
    ),
    Fault(
        "the arena is one byte short",
        _ASKED,
        DATA_FLOW,
        patched(planner, "solve_problem", after(lambda plan, *_: evolve(plan, arena_bytes=plan.arena_bytes - 1))),
        planned(),
    ),
    Fault("the order of calls is turned round", _CALLS, DATA_FLOW, _calls(lambda all: all[::-1]), planned()),
    Fault(
        "a call reads its first operand twice",
        _CALLS,
        DATA_FLOW,
        _calls(lambda all: tuple(map(_first_operand, all))),
        planned(),
    ),
    Fault("a call runs the kernel of the next one", _CALLS, DATA_FLOW, _calls(_kernels_exchanged), planned()),
    Fault(
        "a call has no temporaries", _CALLS, DATA_FLOW, _calls(lambda all: tuple(map(_no_temporaries, all))), planned()
    ),
    Fault("an operator is left out", _CALLS, DATA_FLOW, _calls(lambda all: all[1:]), planned()),
    Fault("an operator runs twice", _CALLS, DATA_FLOW, _calls(lambda all: (*all, all[-1])), planned()),
    Fault(
        "constants hold other numbers", _CALLS, DATA_FLOW, patched(planner, "PlacedPlan", _other_constants), planned()
    ),
    Fault(
        "the alignment is ignored",
        _CHUNKS,
        PLACEMENT,
        patched(solving, "to_problem", lambda right: lambda own, _, padding: right(own, 4, padding)),
        planned(alignment=256),
    ),
    Fault(
        "the padding is ignored",
        _CHUNKS,
        PLACEMENT,
        patched(solving, "to_problem", lambda right: lambda own, alignment, _: right(own, alignment, 0)),
        planned(padding=64),
    ),
    Fault(
        "elements and temporaries are not aligned",
        _ASKED,
        PLACEMENT,
        patched(solving, "align_items", lambda _: lambda problem, *__: problem),
        planned(alignment=1),
    ),
    Fault("a solver lets two chunks overlap", _SOLVERS, OFFSETS, _solved(_shifted), planned(**_BY_SIZE)),
    Fault(
        "a solver ignores the alignment", _SOLVERS, OFFSETS, _solved(lambda offset, _: offset + 4), planned(**_BY_SIZE)
    ),
    Fault(
        "a solver gives an address below 0",
        _SOLVERS,
        OFFSETS,
        _solved(lambda offset, _: offset - 64),
        planned(**_BY_SIZE),
    ),
    Fault(
        "a solver believes lifetimes where calls run at once",
        _SOLVERS,
        OFFSETS,
        patched(
            greedy, "place_in_order", lambda right: lambda problem, *rest: right(evolve(problem, conflicts=None), *rest)
        ),
        planning(branches, parallel="exact", **_BY_SIZE),
    ),
    Fault(
        "a solver claims to have proved more than its arena has",
        _SOLVERS,
        OFFSETS,
        patched(greedy.Greedy, "solve", after(lambda answer, *_: evolve(answer, lower_bound=2**40))),
        planned(**_BY_SIZE),
    ),
    Fault(
        "a solver places what overwrites by itself", _SOLVERS, OFFSETS, _solved(_not_with_its_root), planned(**_BY_SIZE)
    ),
)
