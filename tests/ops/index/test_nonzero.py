"""Positions of elements that are not zero, and their number, against numpy and onnxruntime."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ops
from engine.api import compile_graph
from engine.graph.graph import Graph
from engine.text.errors import KernelError
from ops.common.boxes import CACHE_BYTES
from ops.index.nonzero import COUNT_NONZERO, NONZERO
from ops.schema.schema import evaluate
from ops.tensor.errors import CountError, OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import bind, check_kernels, check_no_allocation, check_results, kernels, sign
from tests.helpers.ops.sample_arrays import SEEDS

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "uint64", "int64", "float16", "float32", "float64"])


def holey(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    random = np.random.default_rng(seed)
    return np.asarray(random.integers(-1, 2, shape) * random.integers(0, 2, shape)).astype(dtype)


@given(SHAPES, DTYPES, SEEDS)
def test_nonzero_and_count_nonzero_equal_numpy(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = holey(shape, dtype, seed)
    places = np.array(np.nonzero(np.atleast_1d(x)), np.int64)
    check_kernels(COUNT_NONZERO, [x], [np.array(np.count_nonzero(x))])
    check_kernels(NONZERO, [x], [places], count=places.shape[1])


@given(SHAPES.filter(all), st.sampled_from(["bool", "int32", "int64", "float32", "uint8"]), SEEDS)
def test_nonzero_equals_onnxruntime(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = holey(shape, dtype, seed)
    (wanted,) = onnxruntime_node("NonZero", [x])
    check_results(NONZERO, [x], [wanted], count=int(np.count_nonzero(x)))


def test_nonzero_counts_nan_and_not_minus_zero() -> None:
    x = np.array([np.nan, -0.0, 0.0, np.inf, 5e-324])
    check_results(COUNT_NONZERO, [x], [np.array(3)])
    (places,) = evaluate(NONZERO, x, count=3)
    assert places.tolist() == [[0, 3, 4]]


@pytest.mark.parametrize("shape", [(3, CACHE_BYTES), (CACHE_BYTES // 8, 3, 9), (7, 2 * CACHE_BYTES // 3)])
def test_nonzero_of_tensors_in_several_pieces(shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).random(shape) < 0.01).astype(np.float32)
    check_results(COUNT_NONZERO, [x], [np.array(np.count_nonzero(x))])
    check_results(NONZERO, [x], [np.array(np.nonzero(x))], count=int(np.count_nonzero(x)))
    check_results(NONZERO, [x.T != 0], [np.array(np.nonzero(x.T))], count=int(np.count_nonzero(x)))


@given(st.integers(0, 20), DTYPES)
def test_nonzero_refuses_another_count_than_was_given(count: int, dtype: str) -> None:
    x = np.resize(np.array([1, 0, 1], dtype), (4, 5))
    if count == 13:
        evaluate(NONZERO, x, count=count)
        return
    with pytest.raises(CountError, match=f"^13 elements are there, and {count} were said to be$"):
        evaluate(NONZERO, x, count=count)


def test_nonzero_writes_no_indices_beyond_its_output() -> None:
    x, room = np.ones(9), np.full((1, 9), -7)
    signature = sign(NONZERO, [x], {"count": 4})
    for kernel in kernels(NONZERO, signature):
        with pytest.raises(CountError):
            bind(kernel, signature, [x], [room[:, :4]])()
        assert (room[:, 4:] == -7).all()


@pytest.mark.parametrize("count", [-1, 5])
def test_nonzero_refuses_an_impossible_count_at_once(count: int) -> None:
    with pytest.raises(OpError, match=rf"nonzero.*count {count} of 4 elements"):
        evaluate(NONZERO, np.zeros((2, 2)), count=count)


def test_nonzero_allocates_nothing() -> None:
    x = holey((400, 500), "float32", 0)
    for array in (x, x.T, x != 0, x.T != 0):
        check_no_allocation(COUNT_NONZERO, [array])
        check_no_allocation(NONZERO, [array], count=int(np.count_nonzero(x)))


def test_count_nonzero_in_a_graph() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3))
    graph.output(ops.count_nonzero(x), "count")
    assert compile_graph(graph, optimise=0).run({"x": np.eye(2, 3, dtype=np.float32)})["count"] == 2


def test_nonzero_in_a_graph_with_another_count_names_the_operator() -> None:
    graph = Graph()
    (places,) = graph.add(NONZERO, [graph.input("x", (2, 3))], {"count": 3})
    graph.output(places, "places")
    with pytest.raises(KernelError, match=r"'nonzero_0' failed on .*: 2 elements are there, and 3 were said to be"):
        compile_graph(graph, optimise=0).run({"x": np.eye(2, 3, dtype=np.float32)})
