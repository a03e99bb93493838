"""Slices chosen by a condition, against numpy and onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.index.compress import COMPRESS
from ops.schema.schema import evaluate
from ops.tensor.errors import CountError, OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import SEEDS

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "int64", "float16", "float32", "float64"])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Array, int | None]:
    """Draws a tensor, a condition that may be too short, and an axis or none."""
    shape, dtype = draw(SHAPES), draw(DTYPES)
    x = np.random.default_rng(draw(SEEDS)).integers(0, 100, shape).astype(dtype)
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    most = x.size if axis is None else x.shape[axis]
    return x, np.array(draw(st.lists(st.booleans(), max_size=min(most, 12))), bool), axis


@given(cases())
def test_compress_equals_numpy(case: tuple[Array, Array, int | None]) -> None:
    x, condition, axis = case
    wanted = np.compress(condition, x, axis)
    check_kernels(COMPRESS, [x, condition], [wanted], axis=axis, count=int(condition.sum()))


@settings(max_examples=25)
@given(cases().filter(lambda case: case[0].size > 0))
def test_compress_equals_onnxruntime(case: tuple[Array, Array, int | None]) -> None:
    x, condition, axis = case
    (wanted,) = onnxruntime_node("Compress", [x, condition], **({} if axis is None else {"axis": axis}))
    check_results(COMPRESS, [x, condition], [wanted], axis=axis, count=int(condition.sum()))


def test_compress_takes_a_scalar_as_one_element() -> None:
    (y,) = evaluate(COMPRESS, np.array(7), np.array([True]), count=1)
    assert y.tolist() == [7]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_compress_refuses_another_count_than_was_given(count: int) -> None:
    with pytest.raises(CountError, match=f"2 elements are there, and {count} were said to be"):
        evaluate(COMPRESS, np.arange(3), np.array([True, False, True]), count=count)


def test_compress_allocates_nothing() -> None:
    random = np.random.default_rng(0)
    x, condition = random.random((300, 300), np.float32), random.random(300) < 0.5
    for axis in (0, 1):
        check_no_allocation(COMPRESS, [x, condition], axis=axis, count=int(condition.sum()))
    long = random.random(90_000) < 0.5
    check_no_allocation(COMPRESS, [x, long], count=int(long.sum()))


@pytest.mark.parametrize(
    ("condition", "attrs", "message"),
    [
        (np.zeros(2), {"count": 0}, "must be bool"),
        (np.zeros((1, 1), bool), {"count": 0}, "condition of shape"),
        (np.zeros(7, bool), {"count": 0}, r"\(7,\) for 6 slices"),
        (np.zeros(4, bool), {"count": 0, "axis": 1}, r"\(4,\) for 3 slices"),
        (np.zeros(2, bool), {"count": 3}, "count 3 of 2"),
        (np.zeros(2, bool), {"count": -1}, "count -1 of 2"),
        (np.zeros(2, bool), {"count": 0, "axis": 2}, "axis 2 does not exist"),
    ],
)
def test_compress_refuses_operands_that_do_not_fit(condition: Array, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(COMPRESS, np.zeros((2, 3)), condition, **attrs)
