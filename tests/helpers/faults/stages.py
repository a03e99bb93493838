"""Faults between the stages of a run, in plans for other lengths, in plans of files, and in what runs again."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve

import engine
import ops
from engine import Graph
from engine.api import compile_graph
from engine.executor.relocation import Relocation
from engine.graph.graph import Graph as GraphClass
from engine.planning import planner
from engine.planning.options import Options
from engine.remat import trial
from engine.saved.embedded import EmbeddedPlan
from engine.saved.replay import embed, follow
from engine.stages import stage
from engine.stages.restacking import Order, Restacking
from engine.stages.state import LiveTensor, RunState
from tests.helpers.faults.base import (
    AGAIN,
    HANDOVER,
    MODES,
    OVERLAPS,
    PLACEMENT,
    SAVED,
    Fault,
    Plant,
    Work,
    after,
    patched,
)
from tests.helpers.faults.work import weights
from tests.helpers.graphs.staged_executors import in_segments
from tests.helpers.graphs.unplanned_run import assert_same


def in_stages() -> Graph:
    """Returns a network in two stages: rows that are above 0 are picked, and multiplied by tensors that live on."""
    graph = Graph("in stages")
    x = graph.input("x", (12, 8))
    kept = ops.tanh(x @ weights(8, 8))
    rows = ops.nonzero(ops.reduce_sum(x, (1,), keepdims=False) > 0.0)
    picked = ops.gather(kept, ops.reshape(rows, (-1,)), axis=0) @ weights(8, 256, seed=1)
    graph.output(ops.tanh(picked) @ weights(256, 8), "y")
    graph.output(ops.reduce_sum(kept, (0,)), "z")
    return graph


def stages(*, segments: bool = False) -> Work:
    """Returns what runs the network in stages."""

    def work() -> None:
        exe = compile_graph(in_stages(), optimise=0)
        exe = in_segments(exe) if segments else exe
        exe.run({"x": weights(12, 8, seed=5)})

    return work


def _alive(change: Callable[[LiveTensor], LiveTensor]) -> Plant:
    def changed(state: RunState, *_: object) -> RunState:
        return evolve(state, alive={var: change(tensor) for var, tensor in state.alive.items()})

    return patched(stage, "_state_after", after(changed))


def layers() -> Graph:
    """Returns layers of rows of open length, with values that live on."""
    graph = Graph("layers")
    x = graph.input("x", ("n", 17))
    y = x
    for number in range(4):
        z = ops.tanh(y @ weights(17, 17, seed=number))
        y = ops.relu(z @ weights(17, 17, seed=number + 9) + y)
    graph.output(ops.softmax(y), "y")
    return graph


def lengths(*chosen: int, **options: Any) -> Work:
    """Returns what runs the layers with these lengths, one after the other, and compares with runs without an arena."""

    def work() -> None:
        graph = layers()
        exe = compile_graph(graph, optimise=0, threads=1, **options)
        plain = compile_graph(graph, optimise=0, threads=1, mode="dynamic")
        for n in chosen:
            feeds = {"x": weights(n, 17, seed=n)}
            assert_same(exe.run(feeds), plain.run(feeds))

    return work


def _at_one_length(offset: Any, _: object, size: Any, *__: object) -> Any:
    offset = offset.copy()
    if size.max() == 23 * 68:
        offset[int(offset.argmax())] = 0
    return offset


def _sizes_of_the_model(_: object, restacking: Restacking, *__: object) -> Any:
    return restacking.plan.problem.size


def _unaligned(right: Any) -> Callable[..., Any]:
    def offsets(order: Order, size: Any, problem: Any) -> Any:
        return right(order, size, evolve(problem, alignment=problem.alignment // problem.alignment))

    return offsets


def _exchanged(right: Any) -> Callable[..., Any]:
    """Returns words in which the first two operands that differ have each other's addresses."""

    def words(relocation: Relocation, distinct: Any, addresses: Any) -> Any:
        addresses = addresses.copy()
        used = [c for c in np.unique(relocation.column).tolist() if c < len(addresses) and addresses[c]]
        one, other = next((a, b) for a in used for b in used if addresses[a] != addresses[b])
        addresses[[one, other]] = addresses[[other, one]]
        return right(relocation, distinct, addresses)

    return words


def saved(change: Callable[[EmbeddedPlan], EmbeddedPlan]) -> Plant:
    """Returns what changes a saved plan as it is written down."""
    return patched(_Writer, "change", lambda _: staticmethod(change))


class _Writer:
    """What writes plans into files."""

    change: Callable[[EmbeddedPlan], EmbeddedPlan] = staticmethod(lambda plan: plan)


def replayed(graph: Callable[[], GraphClass] | None = None, **options: Any) -> Work:
    """Returns what saves the plan of a graph and follows it."""

    def work() -> None:
        built = (graph or tower)()
        plan = engine.make_plan(built, optimise=0, **options)
        follow(built, _Writer.change(embed(plan)), Options(optimise=0))

    return work


def tower() -> Graph:
    """Returns layers whose results are all needed at the end: the plan is large unless some are computed again."""
    graph = Graph("tower")
    x = graph.input("x", (64, 64))
    parts = [x]
    for number in range(6):
        parts.append(ops.tanh(parts[-1] * float(number + 2)))
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = ops.exp(total) * part
    graph.output(total, "y")
    return graph


def uneven() -> Graph:
    """Returns tensors of different sizes that are alive together."""
    graph = Graph("uneven")
    x = graph.input("x", (8, 8))
    graph.output(ops.concat([x @ weights(8, 8), x @ weights(8, 24)], axis=1) @ weights(32, 4), "y")
    return graph


def _offsets(change: Callable[[list[int]], list[int]]) -> Callable[[EmbeddedPlan], EmbeddedPlan]:
    def changed(plan: EmbeddedPlan) -> EmbeddedPlan:
        names = [name for name, _ in plan.offsets]
        return evolve(plan, offsets=tuple(zip(names, change([at for _, at in plan.offsets]), strict=True)))

    return changed


def _backwards(plan: EmbeddedPlan) -> EmbeddedPlan:
    return evolve(plan, again=tuple((names[::-1], nbytes) for names, nbytes in plan.again))


def within(budget: str) -> Work:
    """Returns what plans the tower within a budget that makes operators run again."""

    def work() -> None:
        plan = engine.make_plan(tower(), optimise=0, budget=budget)
        assert plan.recomputed and plan.recomputed[0].operators

    return work


def _other_output(graph: Any, *_: object) -> Any:
    graph._outputs["y"] = graph.operators[-2].outputs[0]
    return graph


def _operands_exchanged(graph: Any, *_: object) -> Any:
    number, last = next((i, op) for i, op in reversed(list(enumerate(graph._operators))) if len(op.inputs) == 2)
    graph._operators[number] = evolve(last, inputs=last.inputs[::-1])
    return graph


_STAGE = "engine/stages/stage.py"
_REUSE = "engine/stages/restacking.py"
_FILE = "a plan in a file"
_AGAIN = "engine/remat/writing.py"
_BUDGET = "52 KiB"

STAGES = (
    Fault(
        "a live tensor is noted 64 bytes further",
        _STAGE,
        HANDOVER,
        _alive(lambda t: evolve(t, offset=t.offset + 64)),
        stages(),
    ),
    Fault(
        "what is alive may move",
        "engine/planning/reserved.py",
        PLACEMENT,
        patched(planner, "with_pins", lambda _: lambda problem, *__: problem),
        stages(),
    ),
    Fault(
        "a tensor may lie across the end of a segment",
        "engine/planning/reserved.py",
        PLACEMENT,
        patched(planner, "solve_with_boundaries", lambda right: lambda problem, _, solve: right(problem, (), solve)),
        stages(segments=True),
    ),
    Fault(
        "addresses for other lengths are half of what they should be",
        _REUSE,
        OVERLAPS,
        patched(Restacking, "offsets", after(lambda offset, *_: offset // 128 * 64)),
        lengths(15, 16, 17),
    ),
    Fault(
        "one address is wrong at one length",
        _REUSE,
        OVERLAPS,
        patched(Restacking, "offsets", after(_at_one_length)),
        lengths(15, 16, 23),
    ),
    Fault(
        "tensors of other lengths have the sizes of the first",
        _REUSE,
        OVERLAPS,
        patched(Restacking, "sizes", after(_sizes_of_the_model)),
        lengths(15, 16, 23),
    ),
    Fault(
        "addresses for other lengths are not aligned",
        _REUSE,
        OVERLAPS,
        patched(Order, "offsets", _unaligned),
        lengths(15, 16, 17),
    ),
    Fault(
        "a call of another length reads where another operand lies",
        "engine/executor/relocation.py",
        MODES,
        patched(Relocation, "words", _exchanged),
        lengths(16, 16, 17),
    ),
    Fault(
        "the last two tensors of a saved plan have each other's places",
        _FILE,
        SAVED,
        saved(_offsets(lambda at: [*at[:-2], at[-1], at[-2]])),
        replayed(uneven),
    ),
    Fault(
        "a tensor of a saved plan lies where another one is alive",
        _FILE,
        SAVED,
        saved(_offsets(lambda at: [min(at)] * len(at))),
        replayed(),
    ),
    Fault(
        "the arena of a saved plan is 64 bytes short",
        _FILE,
        SAVED,
        saved(lambda plan: evolve(plan, arena_bytes=plan.arena_bytes - 64)),
        replayed(),
    ),
    Fault(
        "a saved plan lacks a place",
        _FILE,
        SAVED,
        saved(lambda plan: evolve(plan, offsets=plan.offsets[:-1])),
        replayed(),
    ),
    Fault(
        "a saved plan runs operators again in front of what they read",
        _FILE,
        SAVED,
        saved(_backwards),
        replayed(budget=_BUDGET),
    ),
    Fault(
        "an output is taken from another operator where some run again",
        _AGAIN,
        AGAIN,
        patched(trial, "write_again", after(_other_output)),
        within(_BUDGET),
    ),
    Fault(
        "an operator runs again with its operands exchanged",
        _AGAIN,
        AGAIN,
        patched(trial, "write_again", after(_operands_exchanged)),
        within(_BUDGET),
    ),
)
