"""Values computed inside others: the same numbers, no larger arena, and what it is for."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.problem import DEFAULT_ALIGNMENT
from engine import Graph, Var
from engine.executor.arenas import new_arena
from engine.executor.poison import GUARD, PoisonExecutor
from engine.executor.static import StaticExecutor
from engine.lower.calls import Join, NestRefusal
from engine.lower.lowering import lower
from engine.nesting.choose import measure
from engine.nesting.hole_filling import fill_holes
from engine.nesting.rewrite import join
from engine.nesting.search import MOST_RUNS, MOST_TOGETHER, find_sub_buffers
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph, plan_lowered
from engine.report.report import report
from engine.report.savings import Saving
from tests.helpers.graphs.concatenations import concat_graph
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.unplanned_run import EVERY_MODE, assert_same, check_modes, random_feeds, run_unplanned


def joins(plan: PlacedPlan) -> list[Join]:
    return [s for s in plan.lowered.instructions if isinstance(s, Join)]


def check_every_mode(graph: Graph) -> None:
    """Checks that every mode gives the bits of a run without a plan."""
    feeds = random_feeds(graph)
    check_modes(graph, feeds, run_unplanned(graph, feeds), EVERY_MODE)


@st.composite
def concats(draw: st.DrawFn) -> Graph:
    return concat_graph(lambda n: draw(st.integers(0, n - 1)))


@pytest.mark.slow
@settings(max_examples=20)
@given(concats())
def test_nested_concatenations_run_the_same_in_no_larger_arena(graph: Graph) -> None:
    check_every_mode(graph)
    assert plan_graph(graph, Options()).arena_bytes <= plan_graph(graph, Options(nest=False)).arena_bytes


@pytest.mark.slow
@settings(max_examples=30)
@given(concats(), st.booleans(), st.booleans())
def test_nesting_all_candidates_runs_the_same(graph: Graph, in_place: bool, with_filled_holes: bool) -> None:
    """Whatever it costs."""
    lowered = lower(graph)
    nesting = find_sub_buffers(lowered, lambda _: True, in_place)
    nested = join(lowered, nesting)
    if with_filled_holes:
        candidate = measure(nested, in_place, reuse=True)
        nested = join(lowered, fill_holes(nesting, nested, candidate.chunks, candidate.problem, DEFAULT_ALIGNMENT))
    feeds = random_feeds(graph)
    for padding in (0, GUARD):
        plan = plan_lowered(nested, Options(padding=padding))
        built = PoisonExecutor(plan) if padding else StaticExecutor(plan, new_arena(plan))
        assert_same(built.run(feeds, {}, copy=True), run_unplanned(graph, feeds))


@pytest.mark.slow
@settings(max_examples=15)
@given(graphs(most=20))
def test_nested_random_graphs_run_the_same_in_no_larger_arena(graph: Graph) -> None:
    check_every_mode(graph)
    assert plan_graph(graph, Options()).arena_bytes <= plan_graph(graph, Options(nest=False)).arena_bytes


@settings(max_examples=12)
@given(graphs(most=20), st.booleans(), st.booleans())
def test_nested_graphs_run_the_same_whatever_option_is_off(graph: Graph, overwrite: bool, reuse: bool) -> None:
    options = Options(overwrite=overwrite, reuse=reuse)
    plan = plan_graph(graph, options)
    assert plan.arena_bytes <= plan_graph(graph, Options(overwrite=overwrite, reuse=reuse, nest=False)).arena_bytes
    feeds = random_feeds(graph)
    outcome = engine.compile(graph, overwrite=overwrite, reuse=reuse, optimise=0).run(feeds)
    assert_same(outcome, run_unplanned(graph, feeds))


def dense_block(channels: int = 4, layers: int = 3, batch: int = 1) -> Graph:
    """Returns a block as in DenseNet: what each layer adds is put behind all that it reads."""
    graph = Graph("dense block")
    x = ops.relu(graph.input("x", (batch, channels, 6, 6)))
    for _ in range(layers):
        x = ops.concat([x, ops.tanh(ops.slice(ops.neg(x), [0], [2], [1]))], axis=1)
    graph.output(ops.neg(x), "y")
    return graph


def test_a_dense_block_copies_nothing() -> None:
    """Concatenations of concatenations: all features lie in the last of them."""
    plan = plan_graph(dense_block(), Options())
    calls = [c.name for c in plan.lowered.calls]
    assert not any(name.startswith("concat") for name in calls)
    assert {plan.lowered.values[s.outputs[0]].owner for s in joins(plan)} == {joins(plan)[-1].outputs[0]}
    assert report(plan).savings.copies == Saving(0, 0)
    check_every_mode(dense_block())
    check_every_mode(dense_block(batch=3))


def test_features_that_are_joined_again_and_again_are_there_once() -> None:
    """PyTorch's DenseNet joins all features anew in each layer. The earlier results are views of the last."""
    graph = Graph("features")
    features = [ops.relu(graph.input("x", (1, 3, 8)))]
    for _ in range(4):
        features.append(ops.tanh(ops.slice(ops.concat(features, axis=1), [0], [3], [1])))
    graph.output(ops.reduce_sum(ops.concat(features, axis=1), axes=(2,)), "y")
    plan, plain = plan_graph(graph, Options()), plan_graph(graph, Options(nest=False))
    assert len(joins(plan)) == 5 and not [c for c in plan.lowered.calls if not c.operators]
    assert plan.arena_bytes < plain.arena_bytes
    check_every_mode(graph)


def test_an_inception_block_needs_its_output_once() -> None:
    """Convolution and activation of a branch both run inside what the branches are joined to."""
    graph, rng = Graph("inception"), np.random.default_rng(0)
    x = graph.input("x", (1, 4, 8, 8))
    weights = [rng.normal(size=(8, 4, 1, 1)).astype(np.float32) for _ in range(3)]
    graph.output(ops.concat([ops.relu(ops.conv2d(x, w)) for w in weights], axis=1), "y")
    plan, plain = plan_graph(graph, Options()), plan_graph(graph, Options(nest=False))
    assert plan.arena_bytes == x.spec.nbytes + 24 * 64 * 4 < plain.arena_bytes
    assert report(plan).savings.nested.tensors == 3
    assert report(plan).savings.overwrites.tensors == 3, "ReLU in place, inside of what is joined"
    check_every_mode(graph)


def skip_concatenation(height: int, width: int) -> Graph:
    """Returns a U-Net of one level: the skip is computed at the beginning, what stands beside it at the end."""
    graph = Graph("skip")
    x = graph.input("x", (1, 4, height, width))
    skip = ops.tanh(x)
    deep = ops.abs(ops.tile(ops.neg(skip), (1, 2, 1, 1)))
    up = ops.reduce_sum(ops.tile(ops.abs(deep), (1, 2, 1, 1)), axes=(1,), keepdims=True)
    up = ops.expand(up, (1, 16, height, width)) * np.ones((1, 16, 1, 1), np.float32)
    graph.output(ops.concat([skip, up], axis=1), "y")
    return graph


IN_HOLES = frozenset({"tile_0", "abs_0", "tile_1", "abs_1"})
"""The values of `skip_concatenation` that no operator asks to be nested."""


def test_short_lived_values_fill_holes_of_a_skip_concatenation() -> None:
    graph = skip_concatenation(8, 8)
    plan, plain = plan_graph(graph, Options()), plan_graph(graph, Options(nest=False))
    hosted = [v.name for v in plan.lowered.values if v.is_view and v.name in IN_HOLES]
    assert hosted and plan.arena_bytes < plain.arena_bytes
    check_every_mode(graph)


@pytest.mark.parametrize("alignment", [64, 256, 4096])
def test_values_in_holes_are_aligned_as_chunks_are(alignment: int) -> None:
    plan = plan_graph(skip_concatenation(16, 17), Options(alignment=alignment))
    values = zip(plan.lowered.values, plan.places, strict=True)
    offsets = [place.layout.offset for value, place in values if value.is_view and value.name in IN_HOLES]
    assert offsets and all(offset % alignment == 0 for offset in offsets)


def test_a_residual_addition_writes_into_what_dies() -> None:
    graph = Graph("residual")
    x = ops.relu(graph.input("x", (64,)))
    graph.output(ops.add(x, ops.tanh(x)), "y")
    plan = plan_graph(graph, Options())
    assert report(plan).savings.overwrites == Saving(2, 2 * 256) and plan.arena_bytes == 2 * 256


def test_graph_inputs_are_copied_into_a_joined_value() -> None:
    """Inputs, constants, what is joined twice and what lies elsewhere already."""
    graph = Graph("parts")
    x, c = graph.input("x", (2, 4)), graph.constant(np.ones((2, 4), np.float32))
    y = ops.tanh(x)
    graph.output(ops.concat([x, y, c, y], axis=0), "y")
    plan = plan_graph(graph, Options())
    assert [c.name for c in plan.lowered.calls] == ["tanh_0", "concat_0/part0", "concat_0/part2", "concat_0/part3"]
    check_every_mode(graph)


def test_nesting_respects_activations_in_place() -> None:
    """`concat_0` may lie where `neg_0` writes, but `tanh_0`, which lies in it, is read after that."""
    graph = Graph("late reader")
    x = graph.input("x", (2, 4))
    y = ops.tanh(x)
    z: Var = ops.neg(ops.concat([y, ops.relu(x)], axis=0))
    graph.output(ops.concat([z, ops.abs(y)], axis=0), "y")
    plan = plan_lowered(join(lower(graph), find_sub_buffers(lower(graph), lambda _: True, in_place=True)), Options())
    assert len(joins(plan)) == 2
    check_every_mode(graph)


def test_nesting_that_costs_memory_is_left_out() -> None:
    """The output of the last concatenation would be there long before most of it is computed."""
    graph = Graph("early")
    x = graph.input("x", (16,))
    early, wide = ops.tanh(x), ops.expand(ops.reshape(x, (16, 1)), (16, 64))
    late = ops.relu(ops.reduce_sum(ops.neg(wide) + wide, axes=(0,)))
    graph.output(ops.concat([early, ops.reshape(ops.expand(ops.reshape(late, (64, 1)), (64, 4)), (256,))], axis=0), "y")
    result = [plan_graph(graph, Options(nest=nest)) for nest in (True, False)]
    assert result[0].arena_bytes == result[1].arena_bytes and not joins(result[0])


def test_nesting_is_off_on_demand_and_where_calls_run_at_once() -> None:
    for options in (Options(nest=False), Options(views=False), Options(parallel="exact")):
        assert not joins(plan_graph(dense_block(), options))


def narrow(rows: int) -> Graph:
    """Returns two columns side by side: as many runs of bytes as there are rows."""
    graph = Graph("narrow")
    x = graph.input("x", (rows, 3))
    graph.output(ops.concat([ops.tanh(x), ops.relu(x)], axis=1), "y")
    return graph


def test_values_of_too_many_byte_runs_are_copied_not_nested() -> None:
    assert joins(plan_graph(narrow(MOST_RUNS), Options()))
    for rows in (MOST_RUNS + 1, 5000):
        assert not joins(plan_graph(narrow(rows), Options()))
    check_every_mode(narrow(5000))


def test_a_view_of_too_many_runs_is_not_looked_for_in_what_has_holes() -> None:
    """Every other element of a nested tensor: the tensor itself has few runs, the view of it many."""
    graph = Graph("view")
    y = ops.tanh(graph.input("x", (2, 12000)))
    graph.output(ops.concat([y, ops.relu(y)], axis=1), "y")
    graph.output(ops.exp(ops.slice(y, [0], [12000], [1], [2])), "z")
    check_every_mode(graph)


def test_joined_values_have_bounded_byte_runs() -> None:
    graph = dense_block(layers=30, batch=MOST_RUNS)
    plan = plan_graph(graph, Options())
    values, runs = plan.lowered.values, Counter[int]()
    for built in joins(plan):
        runs[values[built.outputs[0]].owner] += sum(values[v].layout.runs for v in built.inputs)
    assert MOST_TOGETHER - 2 * MOST_RUNS < max(runs.values()) <= MOST_TOGETHER


def _refusals(graph: Graph, *, nest: bool = True) -> dict[str, NestRefusal]:
    return {r.operator: r.reason for r in plan_graph(graph, Options(nest=nest)).lowered.not_nested}


def test_a_concatenation_that_is_not_nested_says_why() -> None:
    """Inputs of the graph cannot be computed inside the output; all computed values can."""
    graph = Graph("reasons")
    x, y = graph.input("x", (2, 4)), graph.input("y", (2, 4))
    fed: Var = ops.concat([x, y], axis=0)
    computed: Var = ops.concat([ops.relu(x), ops.neg(y)], axis=0)
    graph.output(ops.add(fed, computed), "z")
    concat = [op.name for op in graph.operators if op.schema.name == "concat"]
    assert _refusals(graph) == {concat[0]: NestRefusal.INPUTS}
    assert _refusals(graph, nest=False) == {}


def test_a_nesting_that_costs_bytes_is_refused_for_that() -> None:
    graph = Graph("long")
    x = graph.input("x", (64, 4))
    kept = ops.relu(ops.slice(x, [0], [1], [0]))
    y = ops.neg(x)
    for _ in range(3):
        y = ops.conv1d(ops.reshape(y, (1, 64, 4)), np.ones((64, 64, 1), np.float32))
    graph.output(ops.concat([kept, ops.tanh(ops.reshape(y, (64, 4)))], axis=0), "z")
    reasons = set(_refusals(graph).values())
    assert reasons <= {NestRefusal.BREADTH, NestRefusal.ARENA}
    assert bool(reasons) != any(joins(plan_graph(graph, Options())))


@settings(max_examples=20)
@given(concats())
def test_every_concatenation_is_nested_or_refused(graph: Graph) -> None:
    plan = plan_graph(graph, Options())
    copied = {c.name for c in plan.lowered.calls if any(op.schema.name == "concat" for op in c.operators)}
    assert copied == {refusal.operator for refusal in plan.lowered.not_nested}
