"""Building graphs by hand: names, errors, text."""

import numpy as np
import pytest

import engine
import ops
from engine import Graph, Var
from engine.text.errors import GraphError
from ops.movement.views import SPLIT
from ops.tensor.errors import DtypeError, ShapeError


def test_text_shows_each_operator_on_a_line() -> None:
    graph = Graph("small")
    x = graph.input("x", (2, 3))
    graph.output(ops.softmax(x + 1, axis=0), "y")
    assert graph.text() == (
        "graph small\n"
        "  input    %x: float32[2,3]\n"
        "  constant %constant_0: float32[]\n"
        "  %add_0: float32[2,3] = add(%x, %constant_0)\n"
        "  %softmax_0: float32[2,3] = softmax(%add_0) axis=0\n"
        "  output   y = %softmax_0\n"
    )


def test_graph_refuses_two_tensors_of_one_name() -> None:
    graph = Graph("g")
    graph.input("x", (2,))
    with pytest.raises(GraphError, match="two tensors named 'x'"):
        graph.input("x", (2,))


def test_two_outputs_of_one_name_are_refused_but_one_var_may_have_two_names() -> None:
    graph = Graph("g")
    x = graph.input("x", (2,))
    graph.output(x, "a")
    graph.output(x, "b")
    with pytest.raises(GraphError, match="two outputs named 'a'"):
        graph.output(x, "a")


def test_a_var_of_another_graph_is_refused() -> None:
    x, other = Graph("one").input("x", (2,)), Graph("two").input("y", (2,))
    with pytest.raises(GraphError, match="is not a var of graph 'one'"):
        ops.add(x, other)
    with pytest.raises(GraphError, match="is not a var of graph"):
        Graph("three").output(x)


def test_graph_names_operator_and_shapes_that_do_not_fit() -> None:
    graph = Graph()
    with pytest.raises(ShapeError, match=r"matmul\(float32\[2,3\], float32\[2,3\]\)"):
        ops.matmul(graph.input("a", (2, 3)), graph.input("b", (2, 3)))


def test_sizes_that_overflow_64_bits_are_refused() -> None:
    with pytest.raises(ShapeError, match="64 bits"):
        Graph().input("x", (2**40, 2**40))
    with pytest.raises(ShapeError, match="negative"):
        Graph().input("x", (-1,))
    with pytest.raises(DtypeError, match="complex"):
        Graph().input("x", (1,), "complex64")


def test_constants_cannot_change_and_are_copied_only_where_they_could() -> None:
    graph, array = Graph(), np.ones((2, 3), np.float32)
    kept = graph.constants[graph.constant(array)]
    assert not np.shares_memory(kept, array) and not kept.flags.writeable and array.flags.writeable
    assert graph.constants[graph.constant(kept)] is kept
    with pytest.raises(GraphError, match="must be an array"):
        graph.constant([[1], [2, 3]])


def test_an_operator_that_is_refused_leaves_nothing_behind() -> None:
    graph = Graph()
    x = graph.input("x", (6,))
    ops.neg(x)
    before = (set(graph.vars), graph.operators)
    with pytest.raises(GraphError, match="two tensors named 'x'"):
        graph.add(SPLIT, [x], {"axis": 0, "sizes": (2, 4)}, name="s", output_names=["n", "x"])
    assert (set(graph.vars), graph.operators) == before
    assert graph.add(SPLIT, [x], {"axis": 0, "sizes": (2, 4)}, name="s", output_names=["n", "m"])[0].name == "n"


def test_python_operators_on_vars_compute_what_numpy_does() -> None:
    graph = Graph()
    x, w = graph.input("x", (2, 3)), np.arange(12, dtype=np.float32).reshape(3, 4)
    a = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]], np.float32)
    for name, y in {
        "add": 1 + x,
        "sub": 2 - x,
        "mul": x * 3,
        "div": 1 / x,
        "neg": -x,
        "abs": abs(x),
        "pow": x**2,
        "matmul": x @ w,
        "item": x[:, 1:],
        "row": x[0],
        "back": x[::-1, None],
        "less": x < 0,
        "ge": x >= 0.5,
    }.items():
        graph.output(y, name)
    from_numpy = {
        "add": 1 + a,
        "sub": 2 - a,
        "mul": a * 3,
        "div": 1 / a,
        "neg": -a,
        "abs": abs(a),
        "pow": a**2,
        "matmul": a @ w,
        "item": a[:, 1:],
        "row": a[0],
        "back": a[::-1, None],
        "less": a < 0,
        "ge": a >= 0.5,
    }
    for name, array in engine.compile(graph, optimise=0).run({"x": a}).items():
        np.testing.assert_array_equal(array, from_numpy[name], name)


def test_arrays_may_stand_on_the_left_of_a_var() -> None:
    graph = Graph()
    x = graph.input("x", (2,))
    row = np.array([1.0, 2.0], np.float32)
    for result in (row * x, row + x, row - x, row / x, np.ones((3, 2), np.float32) @ x):
        assert isinstance(result, Var)
    assert isinstance(np.float32(2) * x, Var)  # type: ignore[operator]
