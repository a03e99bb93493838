"""Indexing by brackets along lengths without a number: numpy's result for all lengths, or an error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.text.errors import FeedError
from ops.tensor.errors import OpError, ShapeError

BOUND = st.none() | st.integers(-6, 6)
SLICES = st.builds(slice, BOUND, BOUND, st.sampled_from((None, 1, 2, -1, -2)))
KEYS = st.lists(SLICES | st.integers(-4, 4) | st.none() | st.just(...), max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(KEYS, st.integers(0, 7), st.integers(0, 7))
def test_brackets_on_open_lengths_equal_numpy_or_are_an_error(key: Any, n: int, m: int) -> None:
    graph = Graph("brackets")
    x = graph.input("x", ("n", 3, "m"))
    array = np.arange(n * 3 * m, dtype=np.float32).reshape(n, 3, m)
    try:
        graph.output(x[key] + 1.0, "y")
    except OpError:
        return
    try:
        output = engine.compile(graph, mode="dynamic", optimise=0).run({"x": array})["y"]
    except FeedError:
        return
    np.testing.assert_array_equal(output, array[key] + 1)


@pytest.mark.parametrize(
    "key", [slice(5), slice(0, 3), (slice(None), slice(None), slice(-2, None)), slice(None, None, -1), (..., None)]
)
def test_slices_decide_nothing_about_lengths(key: Any) -> None:
    graph = Graph("slices")
    x = graph.input("x", ("n", 3, "m"))
    graph.output(x[key] + 1.0, "y")
    assert not graph.samples.guards
    for n, m in ((5, 1), (3, 3), (1, 5), (0, 2), (9, 9)):
        array = np.arange(n * 3 * m, dtype=np.float32).reshape(n, 3, m)
        assert (engine.bind(graph, {"n": n, "m": m}).outputs["y"].shape) == array[key].shape


def test_an_index_wants_that_many_elements() -> None:
    graph = Graph("index")
    x = graph.input("x", ("n", 2))
    graph.output(x[3] + x[-2], "y")
    assert engine.bind(graph, {"n": 4}).outputs["y"].shape == (2,)
    with pytest.raises(ShapeError, match="n must be greater than 3, but n is 3"):
        engine.bind(graph, {"n": 3})


def test_a_bound_may_be_a_var_or_a_dimension() -> None:
    graph = Graph("bounds")
    x, k = graph.input("x", ("n", 2)), graph.input("k", (), "int64")
    graph.output(x[:k] + 1.0, "front")
    graph.output(x[k : x.shape[0] - 1] + 1.0, "middle")
    exe = engine.compile(graph, optimise=0)
    array = np.arange(12, dtype=np.float32).reshape(6, 2)
    for number in (0, 2, 5, 6, 9, -1):
        outputs = exe.run({"x": array, "k": np.asarray(number)})
        np.testing.assert_array_equal(outputs["front"], array[:number] + 1)
        np.testing.assert_array_equal(outputs["middle"], array[number:5] + 1)
