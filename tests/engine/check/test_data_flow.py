"""The data-flow judge is given broken plans: each kind of fault is refused, and what it lets pass runs right."""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from allocator import solvers
from allocator.derive import chunks as memory
from allocator.derive.chunks import Chunks
from allocator.derive.lifetimes import lifetimes
from allocator.errors import ProblemError
from allocator.steps import Program, Step
from engine import ExecutionPlan, Graph
from engine.check import check_data_flow
from engine.executor.static import StaticExecutor, new_arena
from engine.lower.calls import Alias, Call, Instruction, arena_ids
from engine.lower.lowering import lower
from engine.lower.schedule import in_sequence
from engine.lower.steps import to_program
from engine.planning.placed import Place, place_values
from engine.text.errors import DataFlowError
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

Fault = Callable[[Graph], ExecutionPlan]


def _plan(
    graph: Graph,
    change_program: Callable[[Program], Program] = lambda x: x,
    change_chunks: Callable[[Program, Chunks], Chunks] = lambda _, x: x,
    overwrite: bool = True,
) -> ExecutionPlan:
    """Returns the planner's flow without its judge, with places where faults can be put in."""
    lowered = lower(graph)
    ids = arena_ids(lowered)
    right = to_program(lowered, ids)
    chunks = change_chunks(right, memory.derive(change_program(right), overwrite=overwrite))
    problem = memory.to_problem(chunks, 16)
    plan = solvers.solve(problem, "pushdown")
    places = place_values(lowered, ids, chunks, plan)
    return ExecutionPlan(lowered, ids, right, chunks, problem, plan, places, 16, in_sequence(lowered))


def _ends_early(_: Program, chunks: Chunks) -> Chunks:
    end = chunks.end.copy()
    free = np.setdiff1d(np.flatnonzero(end - chunks.begin > 1), chunks.dest)
    end[free] -= 1
    return evolve(chunks, end=end)


def _outputs_not_kept(program: Program) -> Program:
    return evolve(program, steps=(*program.steps[:-1], Step()))


def _reads_extend_nothing(_: Program, chunks: Chunks) -> Chunks:
    return evolve(chunks, end=chunks.begin + 1)


def _first_input_only(program: Program) -> Program:
    steps = [evolve(s, reads=s.reads[:1], overwrites=()) for s in program.steps[:-1]]
    return evolve(program, steps=(*steps, program.steps[-1]))


def _views_have_own_chunks(program: Program) -> Program:
    steps = [evolve(s, writes=s.writes + tuple(v.out for v in s.views), views=()) for s in program.steps]
    return evolve(program, steps=tuple(steps))


def _life_of_one_member(program: Program, chunks: Chunks) -> Chunks:
    life, end = lifetimes(program), chunks.end.copy()
    for step in program.steps:
        for value in step.writes:
            end[chunks.chunk_of[value]] = life.end[value]
    return evolve(chunks, end=end)


def _overwrites_what_is_needed(program: Program, chunks: Chunks) -> Chunks:
    """Takes each permitted overwrite, also where others still read the bytes; each chunk once."""
    end = chunks.end.copy()
    src: list[int] = []
    dest: list[int] = []
    offset: list[int] = []
    for tick, step in enumerate(program.steps):
        for forward in step.overwrites:
            s, d = int(chunks.chunk_of[forward.out]), int(chunks.chunk_of[forward.src])
            at = int(chunks.offset_in_chunk[forward.src]) + forward.offset
            fits = at + chunks.size[s] <= chunks.size[d] and chunks.begin[d] < tick
            if fits and s not in src and d not in dest and end[s] > tick:
                src, dest, offset, end[d] = [*src, s], [*dest, d], [*offset, at], tick + 1
    return evolve(chunks, src=src, dest=dest, overwrite_offset=offset, end=end)


def _with_instructions(
    graph: Graph, change: Callable[[tuple[Instruction, ...]], tuple[Instruction, ...]]
) -> ExecutionPlan:
    """Returns a right plan whose stages have been tampered with."""
    plan = _plan(graph)
    return evolve(plan, lowered=evolve(plan.lowered, instructions=change(plan.lowered.instructions)))


def _wrong_operand(instruction: Instruction) -> Instruction:
    """Returns a call of two operands that reads the first one twice."""
    alone = isinstance(instruction, Alias) or len(instruction.inputs) < 2
    return instruction if alone else evolve(instruction, inputs=(instruction.inputs[0],) * len(instruction.inputs))


def _without_workspace(instruction: Instruction) -> Instruction:
    return evolve(instruction, workspace=()) if isinstance(instruction, Call) else instruction


def _kernels_exchanged(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Returns stages of which each call runs the kernel of the next one."""
    calls = [s for s in instructions if isinstance(s, Call)]
    following = dict(zip((c.tick for c in calls), calls[1:] + calls[:1], strict=True))
    return tuple(evolve(s, kernel=following[s.tick].kernel) if isinstance(s, Call) else s for s in instructions)


def _other_constants(graph: Graph) -> ExecutionPlan:
    plan = _plan(graph)
    others = {v: a + 1 for v, a in plan.lowered.constants.items()}
    return evolve(plan, lowered=evolve(plan.lowered, constants=others))


def _moved(graph: Graph) -> ExecutionPlan:
    """Returns a plan whose views begin one element late."""
    plan = _plan(graph)
    pairs = zip(plan.places, plan.lowered.values, strict=True)
    return evolve(plan, places=tuple(_late(p) if v.is_view else p for p, v in pairs))


def _late(place: Place) -> Place:
    return evolve(place, layout=evolve(place.layout, offset=place.layout.offset + place.layout.itemsize))


FAULTS: dict[str, Fault] = {
    "a lifetime ends one tick early": lambda g: _plan(g, change_chunks=_ends_early),
    "an output is not kept past the end": lambda g: _plan(g, change_program=_outputs_not_kept),
    "reads do not extend a lifetime": lambda g: _plan(g, change_chunks=_reads_extend_nothing, overwrite=False),
    "an input still needed is overwritten": lambda g: _plan(
        g, change_chunks=_overwrites_what_is_needed, overwrite=False
    ),
    "a view does not share its chunk": lambda g: _plan(g, change_program=_views_have_own_chunks),
    "a chunk takes the life of one member": lambda g: _plan(g, change_chunks=_life_of_one_member, overwrite=False),
    "the order is not topological": lambda g: _with_instructions(g, lambda instructions: instructions[::-1]),
    "only the first input counts as read": lambda g: _plan(g, change_program=_first_input_only),
    "a call reads the wrong value": lambda g: _with_instructions(
        g, lambda instructions: tuple(map(_wrong_operand, instructions))
    ),
    "a call runs another operator's kernel": lambda g: _with_instructions(g, _kernels_exchanged),
    "a call has no workspace": lambda g: _with_instructions(
        g, lambda instructions: tuple(map(_without_workspace, instructions))
    ),
    "a constant holds other numbers": _other_constants,
    "a view begins at the wrong byte": _moved,
}


def _refused(fault: Fault, graph: Graph) -> bool:
    """Returns whether a judge refuses; what is not refused must run right."""
    try:
        plan = fault(graph)
        check_data_flow(plan)
    except (DataFlowError, ProblemError):
        return True
    feeds = random_feeds(graph)
    outcome = StaticExecutor(plan, new_arena(plan)).run(feeds, {}, copy=True)
    assert_same(outcome, run_unplanned(graph, feeds))
    return False


@pytest.mark.parametrize("name", FAULTS)
def test_check_data_flow_refuses_planted_faults_and_what_passes_runs_right(name: str) -> None:
    refused = sum(_refused(FAULTS[name], build(seeded(seed), 14)) for seed in range(120))
    assert refused >= 4


def test_check_data_flow_refuses_no_sound_plan() -> None:
    for seed in range(120):
        check_data_flow(_plan(build(seeded(seed), 14)))


def test_data_flow_errors_name_call_tensor_and_what_the_bytes_hold() -> None:
    graph = Graph()
    x = graph.input("x", (8,))
    y = ops.neg(x)
    z = ops.add(ops.abs(y), x)
    graph.output(z)
    plan = _plan(graph)
    places = list(plan.places)
    value = {v.name: v.id for v in plan.lowered.values}
    places[value[y.name]] = places[value["x"]]
    with pytest.raises(DataFlowError, match=r"neg_0: 'neg_0' is written over|reads 'x', but byte 0 .* holds 'neg_0'"):
        check_data_flow(evolve(plan, places=tuple(places)))


def test_one_tensor_at_two_inputs_is_overwritten_only_where_both_allow_it() -> None:
    graph = Graph()
    x = graph.input("x", (8, 8))
    h = ops.relu(x)
    graph.output(ops.rms_norm(h, h, axis=0), "once")
    s = ops.abs(x)
    graph.output(s + s, "both")
    plan = engine.make_plan(graph, optimise=0)
    chunk = {v.name: plan.chunk_of(v.id) for v in plan.lowered.values}
    pairs = set(zip(plan.chunks.src.tolist(), plan.chunks.dest.tolist(), strict=True))
    assert (chunk["add_0"], chunk["abs_0"]) in pairs
    assert (chunk["rms_norm_0"], chunk["relu_0"]) not in pairs
    feeds = random_feeds(graph)
    assert_same(engine.compile(graph, optimise=0).run(feeds), run_unplanned(graph, feeds))


def test_the_judge_refuses_to_overwrite_what_another_input_reads() -> None:
    graph = Graph()
    h = ops.relu(graph.input("x", (8, 8)))
    graph.output(ops.rms_norm(h, h, axis=0), "y")
    plan = _plan(graph)
    value = {v.name: v.id for v in plan.lowered.values}
    places = list(plan.places)
    places[value["rms_norm_0"]] = places[value["relu_0"]]
    with pytest.raises(DataFlowError, match="written over its input 'relu_0'"):
        check_data_flow(evolve(plan, places=tuple(places)))


def test_a_constant_that_was_copied_while_planning_holds_what_its_source_shows() -> None:
    graph = Graph()
    flipped = ops.transpose(graph.constant(np.arange(12, dtype=np.float32).reshape(3, 4)))
    graph.output(
        ops.cum_sum(flipped, axis=0)
        + ops.global_max_pool(ops.reshape(ops.slice(flipped, [0], [2], [1], [1]), (1, 2, 4)))[0, 0, 0],
        "y",
    )
    check_data_flow(_plan(graph))


def test_an_operator_that_is_left_out_is_missed() -> None:
    graph = Graph()
    graph.output(ops.neg(ops.abs(graph.input("x", (8,)))))
    plan = _plan(graph)
    shorter = evolve(plan.lowered, instructions=plan.lowered.instructions[:1])
    with pytest.raises(DataFlowError):
        check_data_flow(evolve(plan, lowered=shorter))


def test_the_in_place_trap_an_input_with_another_pending_reader_is_not_overwritten() -> None:
    """MXNet's memory note: in place only where nobody else still needs the input."""
    graph = Graph()
    x = graph.input("x", (16,))
    a = ops.neg(x)
    b = ops.relu(a)
    graph.output(ops.add(a, b), "y")
    feeds = random_feeds(graph)
    plan = _plan(graph)
    pairs = set(zip(plan.chunks.src.tolist(), plan.chunks.dest.tolist(), strict=True))
    chunk = {v.name: plan.chunk_of(v.id) for v in plan.lowered.values}
    assert (chunk[b.name], chunk[a.name]) not in pairs
    assert_same(StaticExecutor(plan, new_arena(plan)).run(feeds, {}, copy=True), run_unplanned(graph, feeds))
