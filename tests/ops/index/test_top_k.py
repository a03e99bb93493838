"""The k best elements, against a stable sort."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.index.top_k import TOP_K
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import SEEDS


def sorted_out(x: Array, k: int, axis: int, largest: bool) -> list[Array]:
    """Returns a stable sort, best first."""
    keys = x.astype(np.float64) * (-1 if largest else 1)
    order = np.argsort(keys, axis, kind="stable").take(np.arange(k), axis)
    return [np.take_along_axis(x, order, axis), order]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["float32", "float16", "int64", "uint8"]),
    st.booleans(),
    st.data(),
    SEEDS,
)
def test_top_k_equals_a_stable_sort(
    shape: tuple[int, ...], dtype: str, largest: bool, data: st.DataObject, seed: int
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    x = np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)
    check_kernels(TOP_K, [x], sorted_out(x, k, axis, largest), k=k, axis=axis, largest=largest)


@pytest.mark.parametrize("k", [1, 5, 100, 999, 1000])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k_of_long_rows_equals_a_stable_sort(k: int, largest: bool) -> None:
    x = np.random.default_rng(0).integers(0, 300, (3, 1000)).astype(np.float32)
    check_results(TOP_K, [x], sorted_out(x, k, 1, largest), k=k, largest=largest)


@given(
    st.lists(st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 2.0]), min_size=1, max_size=12),
    st.sampled_from(["float16", "float32", "float64"]),
    st.booleans(),
    st.data(),
)
def test_nan_is_greater_than_all_numbers(numbers: list[float], dtype: str, largest: bool, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(numbers)))
    keys = [(n != n, 0.0 if n != n else n) for n in numbers]  # noqa: PLR0124 - NaN alone differs from itself
    order = sorted(range(len(keys)), key=lambda i: (not keys[i][0], -keys[i][1]) if largest else keys[i])
    places = np.asarray(order[:k], np.int64)
    x = np.asarray(numbers, dtype)
    check_results(TOP_K, [x], [x[places], places], k=k, largest=largest)


def test_top_k_allocates_nothing() -> None:
    x = np.random.default_rng(0).random((200, 300), np.float32)
    check_no_allocation(TOP_K, [x], k=100)
    check_no_allocation(TOP_K, [x.T.astype(np.float16)], k=100, axis=0)


@pytest.mark.parametrize(
    ("x", "attrs", "message"),
    [
        (np.zeros(3), {"k": 4}, "k = 4 of the 3 elements along axis 0"),
        (np.zeros(3), {"k": -1}, "k = -1"),
        (np.zeros(3), {"k": 1, "axis": 1}, "axis 1 does not exist"),
        (np.zeros(3, bool), {"k": 1}, "takes numbers"),
    ],
)
def test_top_k_refuses_operands_that_do_not_fit(x: Array, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(TOP_K, x, **attrs)
