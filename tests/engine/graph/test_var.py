"""Vars behave in Python as arrays do, but for what needs a value before the graph runs."""

from collections.abc import Callable
from operator import eq, ne
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import EngineError, NoValueError
from ops.tensor.errors import DtypeError

X = np.array([[0, 1, 2], [2, 1, 0]], np.float32)


class _Array:
    """An array of another library."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        return np.array(X[0])


def _run(build: Callable[[Var], Any], array: np.ndarray[Any, Any] = X) -> np.ndarray[Any, Any]:
    graph = Graph()
    graph.output(build(graph.input("x", array.shape, array.dtype)), "y")
    return engine.compile(graph, backend="numpy")(array)["y"]


@given(
    compare=st.sampled_from((eq, ne)),
    other=st.sampled_from((1, 1.0, np.float32(2), np.array([0, 1, 0], np.float32), X, _Array())),
    turned=st.booleans(),
)
def test_vars_compare_their_elements(compare: Callable[..., Any], other: Any, turned: bool) -> None:
    expected = compare(X, other)
    output = _run(lambda x: compare(other, x) if turned else compare(x, other))
    assert output.dtype == bool and np.array_equal(output, expected)


def test_a_var_is_not_equal_to_what_has_no_elements() -> None:
    graph = Graph()
    x = graph.input("x", (2,))
    others: tuple[object, ...] = (None, "x", object())
    assert all(x != other for other in others) and not any(x == other for other in others)
    assert not graph.operators


@pytest.mark.parametrize(
    ("dtype", "number"), [("int64", 0.5), ("bool", 2), ("uint8", -1), ("int8", 300), ("int32", np.nan), ("int16", 1j)]
)
def test_a_number_that_the_element_type_lacks_is_refused(dtype: str, number: Any) -> None:
    x = engine.Graph().input("x", (2,), dtype)
    for compare in (eq, ne):
        with pytest.raises(DtypeError, match=r"is no |complex"):
            compare(x, number)
    if x.dtype != bool:
        with pytest.raises(DtypeError, match=r"is no |complex"):
            x * number


def test_a_number_that_the_element_type_has_is_taken() -> None:
    assert _run(lambda x: x == 2.0, X.astype(np.int64)).tolist() == (X == 2).tolist()


def test_vars_are_keys_by_identity() -> None:
    graph = Graph()
    x, y = graph.input("x", (2,)), graph.input("y", (2,))
    assert {x: 1, y: 2}[y] == 2 and len({x, y, x}) == 2 and not graph.operators


VALUES: dict[str, Callable[[Var], object]] = {
    "if": lambda x: 1 if x > 0 else 2,
    "and": lambda x: x > 0 and x < 1,
    "in": lambda x: 3.0 in x,
    "in a list": lambda x: x in [x + 1],
    "float": float,
    "int": int,
    "array": np.asarray,
    "array of vars": lambda x: np.array([x, x]),
}


@pytest.mark.parametrize("want", VALUES.values(), ids=VALUES.keys())
def test_what_wants_a_value_before_the_run_is_refused(want: Callable[[Var], object]) -> None:
    graph = Graph()
    x = graph.input("x", (2, 3))
    with pytest.raises(NoValueError, match=r"has no value before the graph runs; ") as caught:
        want(x)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, EngineError)


def test_a_var_is_taken_apart_along_its_first_axis() -> None:
    assert np.array_equal(_run(sum), X[0] + X[1])
    assert np.array_equal(_run(lambda x: ops.sub(*x)), X[0] - X[1])
    graph = Graph()
    parts = iter(graph.input("x", (3, 2)))
    assert not graph.operators, "a part is added when it is taken"
    assert next(parts).shape == (2,) and len(list(parts)) == 2


def test_lengths_that_are_not_known_are_told() -> None:
    graph = Graph()
    x, scalar = graph.input("x", ("n", 2)), graph.input("s", ())
    for refused in (x, scalar):
        for want in (len, iter):
            with pytest.raises(NoValueError, match=f"{refused.name!r}"):
                want(refused)
    assert len(graph.input("y", (4,))) == 4
    assert not graph.operators


def test_one_axis_needs_no_sequence() -> None:
    assert np.array_equal(_run(lambda x: ops.reduce_sum(x, 1, keepdims=False)), X.sum(1))
    assert _run(lambda x: ops.squeeze(ops.unsqueeze(x, 0), 0)).shape == X.shape
    assert np.array_equal(_run(lambda x: ops.reshape(x, -1)), X.reshape(-1))
    assert np.array_equal(_run(lambda x: ops.slice(x, 1, 3, axes=1)), X[:, 1:3])
    places: Any = iter((0, 2))
    assert _run(lambda x: ops.unsqueeze(x, places)).shape == (1, 2, 1, 3)
    assert np.array_equal(_run(lambda x: ops.pad(x, 1)), np.pad(X, 1))
    one: Any = np.int64(1)
    assert np.array_equal(_run(lambda x: ops.pad(x, one)), np.pad(X, 1))
    assert np.array_equal(_run(lambda x: ops.pad(x, (0, 2), axes=0)), np.pad(X, ((0, 2), (0, 0))))
    assert np.array_equal(_run(lambda x: ops.tile(ops.reshape(x, -1), 2)), np.tile(X.reshape(-1), 2))


def test_a_shape_may_be_a_var_of_integers() -> None:
    graph = Graph()
    x, shape = graph.input("x", (2, 3)), graph.input("shape", (2,), np.int64)
    graph.output(ops.reshape(x, shape), "y")
    output = engine.compile(graph, backend="numpy")(X, np.array([3, 2]))["y"]
    assert np.array_equal(output, X.reshape(3, 2))


@pytest.mark.parametrize("length", [1, 2, 3, 9])
@pytest.mark.parametrize("start", [0, 1, 2, -1])
def test_a_slice_may_begin_where_the_run_says(length: int, start: int) -> None:
    array = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    graph = Graph()
    x, begin = graph.input("x", array.shape), graph.input("begin", (), np.int64)
    graph.output(ops.slice(x, begin, length, axes=1), "y")
    assert np.array_equal(engine.compile(graph, backend="numpy")(array, start)["y"], array[:, start:length])


@pytest.mark.parametrize("shape", [(2, 8), (8, 2), (1, 16), (16, 1), (4, 4)])
@pytest.mark.parametrize("source", [(4, 4), (2, 8), (16,)])
def test_the_run_may_decide_any_shape(source: tuple[int, ...], shape: tuple[int, ...]) -> None:
    array = np.arange(16, dtype=np.float32).reshape(source)
    graph = Graph()
    x, wanted = graph.input("x", source), graph.input("shape", (2,), np.int64)
    graph.output(ops.reshape(x, wanted), "y")
    assert np.array_equal(engine.compile(graph, backend="numpy")(array, np.array(shape))["y"], array.reshape(shape))


def test_an_input_may_be_named_self() -> None:
    graph = Graph()
    graph.output(graph.input("self", (2,)) + 1, "y")
    assert engine.compile(graph, backend="numpy")(self=np.ones(2, np.float32))["y"].tolist() == [2, 2]
