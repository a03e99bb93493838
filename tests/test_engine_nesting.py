"""Values computed inside others: the same numbers, no larger arena, and what it is for."""

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import ExecutionPlan, Graph, Var
from engine.calls import Join
from engine.executor.poison import GUARD, PoisonExecutor
from engine.executor.static import StaticExecutor, new_arena
from engine.joining import join
from engine.lowering import lower
from engine.nesting import find_nests
from engine.planner import Options, plan_graph, plan_lowered
from tests.graphs import graphs
from tests.unplanned import assert_same, random_feeds, run_unplanned


def joins(plan: ExecutionPlan) -> list[Join]:
    return [s for s in plan.lowered.stages if isinstance(s, Join)]


def check_modes(graph: Graph) -> None:
    """All ways to run give the bits of a run without a plan."""
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    assert_same(engine.compile(graph).run(feeds), wanted)
    assert_same(engine.compile(graph, mode="dynamic").run(feeds), wanted)
    assert_same(engine.compile(graph, debug="poison").run(feeds), wanted)
    assert_same(engine.compile(graph, parallel="exact", threads=2).run(feeds), wanted)


Choose = Callable[[int], int]


def concat_graph(choose: Choose) -> Graph:
    """Concatenations of what was computed: of activations, of each other, of views, twice of the same."""
    graph = Graph("concats")
    pool = [graph.input("x", (2, 4)), graph.constant(np.ones((1, 4), np.float32))]
    for _ in range(2 + choose(14)):
        pool.append(_grown(pool, choose))
    for i in range(1 + choose(3)):
        graph.output(pool[-1 - choose(min(4, len(pool)))], f"y{i}")
    return graph


def _grown(pool: list[Var], choose: Choose) -> Var:
    x = pool[-1 - choose(min(4, len(pool)))]
    kind = choose(8)
    if kind < 3 and sum(v.shape[0] for v in pool[-3:]) < 40:
        return ops.concat([pool[-1 - choose(min(5, len(pool)))] for _ in range(1 + choose(3))], axis=0)
    if kind == 3:
        start = choose(x.shape[0])
        return ops.slice(x, [start], [start + 1 + choose(x.shape[0] - start)], [0])
    if kind == 4:
        return ops.reshape(ops.reshape(x, (x.shape[0] * 4,)), x.shape)
    if kind == 5:
        same = [v for v in pool if v.shape == x.shape]
        return ops.add(x, same[choose(len(same))])
    return (ops.relu, ops.neg, ops.tanh)[choose(3)](x)


@st.composite
def concats(draw: st.DrawFn) -> Graph:
    return concat_graph(lambda n: draw(st.integers(0, n - 1)))


@settings(max_examples=120)
@given(concats())
def test_concatenations_run_the_same_in_no_larger_arena(graph: Graph) -> None:
    check_modes(graph)
    assert plan_graph(graph, Options()).arena_bytes <= plan_graph(graph, Options(nest=False)).arena_bytes


@settings(max_examples=60)
@given(concats(), st.booleans())
def test_all_that_can_be_nested_runs_the_same(graph: Graph, in_place: bool) -> None:
    """Whatever it costs."""
    lowered = lower(graph)
    nested = join(lowered, find_nests(lowered, lambda _: True, in_place))
    feeds = random_feeds(graph)
    for padding in (0, GUARD):
        plan = plan_lowered(nested, Options(padding=padding))
        made = PoisonExecutor(plan) if padding else StaticExecutor(plan, new_arena(plan))
        assert_same(made.run(feeds, {}, copy=True), run_unplanned(graph, feeds))


@settings(max_examples=40)
@given(graphs(most=20))
def test_random_graphs_run_the_same_in_no_larger_arena(graph: Graph) -> None:
    check_modes(graph)
    assert plan_graph(graph, Options()).arena_bytes <= plan_graph(graph, Options(nest=False)).arena_bytes


@settings(max_examples=20)
@given(graphs(most=20), st.booleans(), st.booleans())
def test_whatever_is_switched_off(graph: Graph, overwrite: bool, reuse: bool) -> None:
    options = Options(overwrite=overwrite, reuse=reuse)
    plan = plan_graph(graph, options)
    assert plan.arena_bytes <= plan_graph(graph, Options(overwrite=overwrite, reuse=reuse, nest=False)).arena_bytes
    feeds = random_feeds(graph)
    found = engine.compile(graph, overwrite=overwrite, reuse=reuse).run(feeds)
    assert_same(found, run_unplanned(graph, feeds))
