"""The judge of data flow: what it says, and where it must not be too strict. `tests/faults.py` has what it must see."""

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from allocator import solvers
from allocator.derive import chunks as memory
from engine import ExecutionPlan, Graph
from engine.check import check_data_flow
from engine.executor.arenas import new_arena
from engine.executor.static import StaticExecutor
from engine.lower.calls import arena_ids
from engine.lower.lowering import lower
from engine.lower.schedule import in_sequence
from engine.lower.steps import to_program
from engine.planning.placed import place_values
from engine.text.errors import DataFlowError
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned


def _plan(graph: Graph) -> ExecutionPlan:
    """Returns the planner's flow without its judge."""
    lowered = lower(graph)
    ids = arena_ids(lowered)
    program = to_program(lowered, ids)
    chunks = memory.derive(program)
    problem = memory.to_problem(chunks, 16)
    plan = solvers.solve(problem, "pushdown")
    places = place_values(lowered, ids, chunks, plan)
    return ExecutionPlan(lowered, ids, program, chunks, problem, plan, places, 16, in_sequence(lowered))


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
