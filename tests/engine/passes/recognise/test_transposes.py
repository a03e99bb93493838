"""Transposes are pushed through elementwise operators where fewer are left, and never more."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from engine.passes import verify
from engine.passes.cleanup.redundant import DEAD_CODE
from engine.passes.recognise.transposes import TRANSPOSES
from ops.movement.views import TRANSPOSE
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.graphs.random_graphs import Choose, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

_PERMS = ((2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1))


@st.composite
def transposed_graphs(draw: st.DrawFn) -> Graph:
    """Draws transposes and elementwise operators, constants of fewer axes among them."""
    return build(lambda n: draw(st.integers(0, n - 1)))


def build(choose: Choose) -> Graph:
    """Builds the same from choices."""
    graph = Graph("transposed")
    pool = [graph.input("x", (2, 3, 4)), graph.input("y", (4, 3, 2)), graph.input("z", (3, 2, 4))]
    pool += [graph.constant(np.arange(24, dtype=np.float32).reshape(2, 3, 4)), graph.input("one", ())]
    pool.append(graph.input("cube", (3, 3, 3)))
    pool.append(graph.constant(np.asarray([1, 2, 3, 4], np.float32)))
    for _ in range(2 + choose(14)):
        pool.append(_step(pool[-1 - choose(min(5, len(pool)))], pool, choose))
    for i in range(1 + choose(2)):
        graph.output(pool[-1 - choose(3)], f"y{i}")
    return DEAD_CODE(graph) if choose(3) else graph


def _step(x: Var, pool: list[Var], choose: Choose) -> Var:
    if choose(2) and x.ndim == 3:
        return ops.transpose(x, _PERMS[choose(5)])
    if choose(2):
        functions: tuple[Callable[[Var], Var], ...] = (ops.relu, ops.neg, ops.tanh, lambda v: ops.clip(v, -1.0, 1.0))
        return functions[choose(4)](x)
    fitting = [v for v in pool if v.shape == x.shape or v.ndim == 0 or (v.shape == x.shape[-1:])]
    return ops.add(x, fitting[choose(len(fitting))])


def _count(graph: Graph) -> int:
    return sum(op.schema is TRANSPOSE for op in graph.operators)


def _check(graph: Graph) -> None:
    after, feeds = TRANSPOSES(graph), random_feeds(graph)
    verify(graph, after)
    alive = DEAD_CODE(graph)
    assert after is alive or _count(after) < _count(alive) or after.text() == alive.text()
    assert_same(run_unplanned(after, feeds), run_unplanned(graph, feeds))
    assert TRANSPOSES(after) is after


@settings(max_examples=40)
@given(transposed_graphs())
def test_transposes_pass_keeps_bits_and_leaves_fewer_transposes(graph: Graph) -> None:
    _check(graph)


@pytest.mark.slow
def test_transposes_pass_keeps_bits_in_many_graphs() -> None:
    for seed in range(800):
        _check(build(seeded(seed)))


def test_a_network_of_rows_and_columns_before_and_after() -> None:
    """A converter from channels last to first leaves a residual block between two transposes."""
    graph = Graph("residual")
    x = graph.input("x", (1, 3, 4, 5))
    last = ops.transpose(x, (0, 2, 3, 1))
    active = ops.relu(last * np.asarray([1, 2, 3], np.float32))
    graph.output(ops.transpose(active + last, (0, 3, 1, 2)), "y")
    assert (
        graph.text()
        == """\
graph residual
  input    %x: float32[1,3,4,5]
  constant %constant_0: float32[3]
  %transpose_0: float32[1,4,5,3] = transpose(%x) perm=(0,2,3,1)
  %mul_0: float32[1,4,5,3] = mul(%transpose_0, %constant_0)
  %relu_0: float32[1,4,5,3] = relu(%mul_0)
  %add_0: float32[1,4,5,3] = add(%relu_0, %transpose_0)
  %transpose_1: float32[1,3,4,5] = transpose(%add_0) perm=(0,3,1,2)
  output   y = %transpose_1
"""
    )
    assert (
        TRANSPOSES(graph).text()
        == """\
graph residual
  input    %x: float32[1,3,4,5]
  constant %constant_0: float32[1,3,1,1]
  %mul_0: float32[1,3,4,5] = mul(%x, %constant_0)
  %relu_0: float32[1,3,4,5] = relu(%mul_0)
  %transpose_1: float32[1,3,4,5] = add(%relu_0, %x)
  output   y = %transpose_1
"""
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.relu(ops.transpose(x, (2, 1, 0))),
        lambda x: ops.transpose(ops.relu(x), (2, 1, 0)),
        lambda x: ops.transpose(ops.softmax(ops.transpose(x, (2, 1, 0))), (2, 1, 0)),
        lambda x: ops.transpose(ops.reduce_sum(ops.transpose(x, (2, 1, 0)), (1,)), (2, 1, 0)),
    ],
)
def test_transposes_pass_changes_nothing_where_none_would_vanish(function: Callable[[Var], Var]) -> None:
    graph = Graph()
    graph.output(function(graph.input("x", (2, 3, 4))), "y")
    assert TRANSPOSES(graph) is graph


def test_transposes_pass_counts_the_order_of_fetched_values() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3, 4))
    between = ops.relu(ops.transpose(x, (2, 1, 0)))
    graph.output(between, "between")
    graph.output(ops.transpose(between, (2, 1, 0)), "y")
    after = TRANSPOSES(graph)
    verify(graph, after)
    assert _count(after) == 1
    assert after.outputs["between"].name == between.name


def test_a_region_that_reads_a_transpose_of_itself_stays() -> None:
    graph = Graph()
    x = ops.relu(graph.input("x", (3, 3)))
    graph.output(x + ops.transpose(x), "y")
    assert TRANSPOSES(graph) is graph


def test_transposes_pass_ignores_unread_operators() -> None:
    graph = Graph()
    x = ops.transpose(graph.input("x", (2, 3)))
    ops.transpose(ops.relu(x))
    graph.output(ops.tanh(x), "y")
    after = TRANSPOSES(graph)
    assert schema_names(after) == ["transpose", "tanh"]
    assert TRANSPOSES(after) is after


def test_transposes_pass_leaves_parameter_updates() -> None:
    graph = Graph()
    p = graph.parameter(np.ones((2, 3), np.float32), "p")
    x = ops.transpose(graph.input("x", (3, 2)))
    value = graph.assign(p, p + x)
    graph.output(ops.transpose(value), "y")
    assert TRANSPOSES(graph) is graph
    assert engine.optimise(graph, 2) is graph
