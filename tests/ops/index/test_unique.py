"""Distinct elements and slices, against a dictionary, numpy and onnxruntime."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.index.unique import UNIQUE
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import BFLOAT16, Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results, same
from tests.helpers.ops.sample_arrays import SEEDS

DTYPES = st.sampled_from(["bool", "int8", "int64", "uint64", "float16", BFLOAT16, "float32", "float64"])


@st.composite
def tensors(draw: st.DrawFn, dtypes: st.SearchStrategy[str] = DTYPES) -> tuple[Array, int | None]:
    """Draws a tensor of few different elements, and an axis or none."""
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=3)))
    random = np.random.default_rng(draw(SEEDS))
    x = np.array(random.integers(0, draw(st.integers(1, 4)), shape)).astype(draw(dtypes))
    return x, draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None


def key(row: Array) -> tuple[tuple[bool, float], ...]:
    """Returns the key that rows are compared by: NaN behind all numbers."""
    return tuple((math.isnan(v), 0.0 if math.isnan(v) else v) for v in row.reshape(-1).tolist())


def padded(x: Array, axis: int, length: int) -> Array:
    """Pads an axis with zeros behind the elements."""
    missing = [(0, length - n if i == axis % x.ndim else 0) for i, n in enumerate(x.shape)]
    return np.pad(x, missing)


def distinct(x: Array, axis: int | None, in_order: bool) -> list[Array]:
    """Computes all five outputs."""
    x, along = (x.reshape(-1), 0) if axis is None else (x, axis)
    n = x.shape[along]
    keys = [key(x.take(i, along)) for i in range(n)]
    unique_keys = sorted(set(keys)) if in_order else list(dict.fromkeys(keys))
    first = [keys.index(k) for k in unique_keys]
    inverse = np.array([unique_keys.index(k) for k in keys], np.int64)
    counts = np.array([keys.count(k) for k in unique_keys], np.int64)
    places = padded(np.array(first, np.int64), 0, n)
    return [padded(x.take(first, along), along, n), places, inverse, padded(counts, 0, n), np.array(len(unique_keys))]


@pytest.mark.slow
@given(tensors(), st.booleans())
def test_unique_equals_a_dictionary(case: tuple[Array, int | None], in_order: bool) -> None:
    x, axis = case
    check_kernels(UNIQUE, [x], distinct(x, axis, in_order), axis=axis, sorted=in_order)


@settings(max_examples=25)
@given(tensors(), st.booleans(), SEEDS)
def test_unique_takes_nan_as_equal_and_last(case: tuple[Array, int | None], in_order: bool, seed: int) -> None:
    x, axis = case
    holes = np.where(np.random.default_rng(seed).random(x.shape) < 0.4, np.nan, x).astype(np.float32)
    check_results(UNIQUE, [holes], distinct(holes, axis, in_order), axis=axis, sorted=in_order)


@settings(max_examples=30)
@given(tensors(st.sampled_from(["int8", "int64", "float32", "float64"])), st.booleans())
def test_unique_equals_onnxruntime(case: tuple[Array, int | None], in_order: bool) -> None:
    x, axis = case
    given_axis = {} if axis is None else {"axis": axis}
    values, first, inverse, counts = onnxruntime_node("Unique", [x], 4, sorted=int(in_order), **given_axis)
    n, along = len(inverse), 0 if axis is None else axis
    wanted = [padded(values, along, n), padded(first, 0, n), inverse, padded(counts, 0, n), np.array(len(first))]
    check_results(UNIQUE, [x], wanted, axis=axis, sorted=in_order)


@pytest.mark.parametrize("size", [15, 16, 17, 33, 1000, 4097])
@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_unique_of_long_tensors_equals_numpy(size: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, size // 2, size).astype(dtype)
    values, first, inverse, counts, number = evaluate(UNIQUE, x)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, wanted in zip((values, first, counts), (expected[0], expected[1], expected[3]), strict=True):
        same(got[:number], wanted)
    same(inverse, expected[2])


def test_unique_gives_the_first_of_equals() -> None:
    values, *_ = evaluate(UNIQUE, np.array([-0.0, 0.0, 1.0]))
    assert np.signbit(values).tolist() == [True, False, False]


def test_unique_of_empty_rows_and_of_no_elements() -> None:
    _, first, inverse, counts, number = evaluate(UNIQUE, np.zeros((3, 0)), axis=0)
    assert (first.tolist(), inverse.tolist(), counts.tolist(), int(number)) == ([0] * 3, [0] * 3, [3, 0, 0], 1)
    assert [output.size for output in evaluate(UNIQUE, np.zeros((0, 2)), axis=0)] == [0, 0, 0, 0, 1]
    assert evaluate(UNIQUE, np.zeros((0, 2)))[-1] == 0


def test_unique_allocates_nothing() -> None:
    x = np.random.default_rng(0).integers(0, 9, (400, 300))
    check_no_allocation(UNIQUE, [x])
    for axis in (0, 1):
        check_no_allocation(UNIQUE, [x.astype(np.float16)], axis=axis, sorted=False)


def test_unique_refuses_an_axis_that_does_not_exist() -> None:
    with pytest.raises(OpError, match="axis 2 does not exist"):
        evaluate(UNIQUE, np.zeros((2, 2)), axis=2)
