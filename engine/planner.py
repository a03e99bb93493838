"""The whole flow on one page: graph -> calls -> steps -> lifetimes -> chunks -> problem -> plan -> execution plan."""

from collections.abc import Collection, Mapping

import numpy as np
from attrs import evolve, frozen

from allocator import chunks as memory
from allocator import solvers
from allocator.problem import Column, Plan, Problem
from allocator.steps import Overwrite, Program, Step, View
from engine.calls import Alias, Call, Lowered, Stage, Storage
from engine.check import check_data_flow
from engine.errors import OptionError
from engine.graph import Graph
from engine.lowering import lower
from engine.plan import ExecutionPlan, Place
from ops.layout import Layout


@frozen
class Options:
    """How to plan. `alignment` (a power of two) and `padding` are bytes.

    `bound` names the inputs and outputs that live in arrays of the caller's.
    `views`, `overwrite` and `reuse` switch the three ways of saving memory; what is switched off runs through the same
    code. `strategy` is one of `allocator.solvers.STRATEGIES` or "best".
    """

    strategy: str = "best"
    alignment: int = 64
    padding: int = 0
    seed: int = 0
    views: bool = True
    overwrite: bool = True
    reuse: bool = True
    bound: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise OptionError(f"alignment {self.alignment} is no power of two")
        if self.padding < 0:
            raise OptionError(f"padding {self.padding} is negative")


def plan_graph(graph: Graph, options: Options) -> ExecutionPlan:
    """Plans a graph. Both judges run: `allocator.check` inside `solve`, the data-flow judge on the result."""
    _check_bound(graph, options.bound)
    lowered = lower(graph, views=options.views, bound=options.bound)
    ids = {v.id: i for i, v in enumerate(v for v in lowered.values if v.storage is Storage.ARENA)}
    program = to_program(lowered, ids)
    chunks = memory.derive(program, overwrite=options.overwrite, reuse=options.reuse)
    problem = _align_items(memory.to_problem(chunks, options.alignment, options.padding), lowered, ids, chunks.chunk_of)
    plan = solvers.solve(problem, options.strategy, options.seed)
    places = _places(lowered, ids, chunks, plan)
    made = ExecutionPlan(lowered, ids, chunks, problem, plan, places, options.alignment)
    check_data_flow(made)
    return made


def to_program(lowered: Lowered, ids: Mapping[int, int]) -> Program:
    """Calls and aliases as memory sees them, between a feed step and a fetch step."""
    feed = Step(writes=_known(lowered.inputs.values(), ids))
    fetch = Step(reads=_known(lowered.outputs.values(), ids))
    steps = tuple(_step(stage, lowered, ids) for stage in lowered.stages)
    sizes = [0] * len(ids)
    for value in lowered.values:
        if value.id in ids:
            low, high = value.layout.extent
            sizes[ids[value.id]] = high - low
    return Program((feed, *steps, fetch), tuple(sizes))


def _check_bound(graph: Graph, bound: Collection[str]) -> None:
    unknown = sorted(set(bound) - set(graph.inputs) - set(graph.outputs))
    if unknown:
        raise OptionError(f"graph {graph.name!r} has no input or output {unknown[0]!r} to bind")


def _known(values: Collection[int], ids: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(ids[v] for v in values if v in ids))


def _step(stage: Stage, lowered: Lowered, ids: Mapping[int, int]) -> Step:
    if isinstance(stage, Alias):
        return _alias_step(stage, lowered, ids)
    return _call_step(stage, ids)


def _alias_step(stage: Alias, lowered: Lowered, ids: Mapping[int, int]) -> Step:
    if stage.inputs[0] not in ids:
        return Step()
    low = lowered.values[stage.inputs[0]].layout.extent[0]
    found = (lowered.values[v] for v in stage.outputs)
    views = tuple(View(ids[v.id], ids[stage.inputs[0]], v.layout.extent[0] - low) for v in found)
    return Step(views=views)


def _call_step(stage: Call, ids: Mapping[int, int]) -> Step:
    reads = _known(stage.inputs, ids)
    writes = _known(stage.outputs + stage.workspace, ids)
    taken = tuple(
        Overwrite(ids[stage.outputs[o.output]], ids[stage.inputs[o.input]], o.offset) for o in stage.overwrites
    )
    return Step(reads, writes, (), taken)


def _align_items(problem: Problem, lowered: Lowered, ids: Mapping[int, int], chunk_of: Column) -> Problem:
    """No chunk is aligned below the size of the elements in it."""
    alignment = problem.alignment.copy()
    free = np.ones(len(problem), bool)
    free[problem.src] = False
    for value in lowered.values:
        if value.id in ids and free[chunk_of[ids[value.id]]]:
            chunk = chunk_of[ids[value.id]]
            alignment[chunk] = max(alignment[chunk], value.spec.dtype.itemsize)
    return evolve(problem, alignment=alignment)


def _places(lowered: Lowered, ids: Mapping[int, int], chunks: memory.Chunks, plan: Plan) -> tuple[Place, ...]:
    starts = plan.offset[chunks.chunk_of] + chunks.offset_in_chunk if ids else np.zeros(0, np.int64)
    made = []
    for value in lowered.values:
        layout: Layout = value.layout
        if value.storage is Storage.ARENA:
            low = layout.extent[0]
            layout = evolve(layout, offset=int(starts[ids[value.id]]) + layout.offset - low)
        made.append(Place(value.storage, value.owner, layout))
    return tuple(made)
