"""Gradients: the walk itself. The rules of operators are tested with their operators."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.graph.graph import Graph
from engine.text.errors import GraphError
from ops.tensor.errors import GradientError
from tests.helpers.graphs.unplanned_run import run_unplanned


def _gradient(graph: Graph, loss: engine.Var, wrt: engine.Var, **feeds: Any) -> list[float]:
    (gradient,) = engine.gradients(loss, [wrt])
    graph.output(gradient, "gradient")
    arrays = {n: np.array(v) for n, v in feeds.items()}
    return [float(v) for v in np.ravel(run_unplanned(graph, arrays)["gradient"])]


def test_a_value_with_several_users_has_its_gradients_added_in_the_backward_part_alone() -> None:
    graph = Graph()
    x = graph.input("x", (3,), "float64")
    loss = ops.reduce_sum(x * x + x, None, keepdims=False)
    forward = len(graph.operators)
    assert _gradient(graph, loss, x, x=[1.0, -2.0, 3.0]) == [3.0, -3.0, 7.0]
    kinds = [op.schema.name for op in graph.operators[:forward]]
    assert kinds == ["mul", "add", "reduce_sum"]


def test_autodiff_computes_only_the_wanted_gradients() -> None:
    graph = Graph()
    x, y = graph.input("x", (), "float64"), graph.input("y", (), "float64")
    loss = (x * y) * x
    forward = len(graph.operators)
    engine.gradients(loss, [y])
    both = Graph()
    x, y = both.input("x", (), "float64"), both.input("y", (), "float64")
    engine.gradients((x * y) * x, [x, y])
    assert len(graph.operators) == forward + 2
    assert len(both.operators) > len(graph.operators)


def test_gradients_of_broadcast_operands_are_summed() -> None:
    graph = Graph()
    x, row = graph.input("x", (2, 3), "float64"), graph.input("row", (1, 3), "float64")
    loss = ops.reduce_sum(x * row, None, keepdims=False)
    assert _gradient(graph, loss, row, x=[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], row=[[1.0, 1.0, 1.0]]) == [11, 22, 33]


def test_an_inner_value_may_be_differentiated_by() -> None:
    graph = Graph()
    x = graph.input("x", (2,), "float64")
    inner = x * 3.0
    loss = ops.reduce_sum(inner * inner, None, keepdims=False)
    assert _gradient(graph, loss, inner, x=[1.0, 2.0]) == [6.0, 12.0]


def test_the_gradient_of_a_loss_by_itself_is_one() -> None:
    graph = Graph()
    x = graph.input("x", (1,), "float64")
    assert _gradient(graph, x, x, x=[5.0]) == [1.0]


def test_a_gradient_seed_stands_for_what_follows_the_output() -> None:
    graph = Graph()
    x, seed = graph.input("x", (2,), "float64"), graph.input("seed", (2,), "float64")
    (gradient,) = engine.gradients(x * x, [x], seed=seed)
    graph.output(gradient, "dx")
    feeds = {"x": np.array([1.0, 2.0]), "seed": np.array([10.0, 100.0])}
    assert run_unplanned(graph, feeds)["dx"].tolist() == [20.0, 400.0]


def test_piecewise_constant_operators_send_no_gradient_on() -> None:
    graph = Graph()
    x = graph.input("x", (2,), "float64")
    loss = ops.reduce_sum(ops.floor(x), None, keepdims=False)
    assert _gradient(graph, loss, x, x=[1.5, 2.5]) == [0.0, 0.0]


def test_a_gradient_may_be_differentiated_again() -> None:
    graph = Graph()
    x = graph.input("x", (1,), "float64")
    (first,) = engine.gradients(x * x * x, [x])
    assert _gradient(graph, first, x, x=[2.0]) == [12.0]


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_a_random_polynomial_has_the_gradient_of_central_differences(data: st.DataObject) -> None:
    graph = Graph()
    x = graph.input("x", (3,), "float64")
    pool = [x, graph.constant(np.array([0.5, -1.0, 2.0]))]
    for _ in range(data.draw(st.integers(1, 8))):
        a, b = (pool[data.draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        pool.append(data.draw(st.sampled_from([ops.add, ops.sub, ops.mul]))(a, b) if a is not pool[1] else x * b)
    loss = ops.reduce_sum(pool[-1] + x, None, keepdims=False)
    graph.output(loss, "loss")
    (gradient,) = engine.gradients(loss, [x])
    graph.output(gradient, "dx")
    at = np.array([0.3, -0.7, 0.2])
    exe = engine.compile(graph, optimise=0)
    got = exe(x=at)["dx"]
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-6
        slope = (exe(x=at + step)["loss"] - exe(x=at - step)["loss"]) / 2e-6
        np.testing.assert_allclose(got[i], slope, rtol=1e-5, atol=1e-6)


def test_autodiff_refuses_wrong_requests() -> None:
    graph, other = Graph("g"), Graph("h")
    x, y = graph.input("x", (2,)), graph.input("y", ())
    n, z = graph.input("n", (), "int64"), other.input("z", ())
    with pytest.raises(GraphError, match="a loss is one float"):
        engine.gradients(x, [x])
    with pytest.raises(GraphError, match="'y' does not depend on 'x'"):
        engine.gradients(y, [x])
    with pytest.raises(GraphError, match="'n' holds int64"):
        engine.gradients(y, [n])
    with pytest.raises(GraphError, match="not a var of the graph of 'y'"):
        engine.gradients(y, [z])
    none: tuple[Any, ...] = ([], x, 3)
    for nothing in none:
        with pytest.raises(GraphError, match="a list of vars"):
            engine.gradients(y, nothing)
    with pytest.raises(GraphError, match=r"3.0 is not a var of a graph"):
        engine.gradients(3.0, [x])  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"the seed is float32\[\], but 'x' is float32\[2\]"):
        engine.gradients(x, [x], seed=y)


def test_a_graph_of_unknown_lengths_is_bound_first() -> None:
    graph = Graph("g")
    x = graph.input("x", ("n",))
    loss = ops.reduce_sum(x * x, None, keepdims=False)
    with pytest.raises(GraphError, match="bind"):
        engine.gradients(loss, [x])
    bound = engine.bind(_with_output(graph, loss), {"n": 2})
    (gradient,) = engine.gradients(bound.outputs["loss"], [bound.inputs["x"]])
    assert gradient.shape == (2,)


def _with_output(graph: Graph, loss: engine.Var) -> Graph:
    graph.output(loss, "loss")
    return graph


def test_an_operator_without_a_rule_is_named() -> None:
    graph = Graph()
    x = graph.input("x", (2, 2))
    loss = ops.reduce_sum(ops.scatter_nd(x, np.array([[0]]), x[:1], "max"), None, keepdims=False)
    before = graph.text()
    with pytest.raises(GradientError, match="scatter_nd_0"):
        engine.gradients(loss, [x])
    assert graph.text() == before


def test_operators_of_the_backward_pass_are_named_after_what_they_differentiate() -> None:
    graph = Graph()
    x = graph.input("x", ())
    engine.gradients(x * x, [x])
    assert [op.name for op in graph.operators] == [
        "mul_0",
        "mul_0/gradient/mul_0",
        "mul_0/gradient/mul_1",
        "mul_0/gradient/add_0",
    ]
