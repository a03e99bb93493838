"""Numbers at equal distances, against Python's range, the formula of ONNX, and onnxruntime."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.movement.arange import ARANGE, ARANGE_COUNT
from ops.schema.schema import evaluate
from ops.tensor.errors import CountError, DataError, OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results

STEPS = st.integers(-9, 9).filter(bool)
ENDS = st.integers(-60, 60)
EIGHTHS = st.integers(-80, 80).map(lambda n: n / 8)


def bounds(dtype: str, *numbers: float) -> list[Array]:
    return [np.array(n).astype(dtype) for n in numbers]


def both(operands: list[Array], wanted: Array, rtol: float = 0.0) -> None:
    """Checks the count, then the numbers."""
    check_kernels(ARANGE_COUNT, operands, [np.array(wanted.size)])
    check_kernels(ARANGE, operands, [wanted], rtol=rtol, count=wanted.size)


@given(ENDS, ENDS, STEPS, st.sampled_from(["int8", "int16", "int64", "float16", "float32", "float64"]))
def test_arange_of_integers_equals_range(start: int, limit: int, delta: int, dtype: str) -> None:
    both(bounds(dtype, start, limit, delta), np.array(range(start, limit, delta)).astype(dtype))


@given(EIGHTHS, EIGHTHS, EIGHTHS.filter(bool), st.sampled_from(["float16", "float32", "float64"]))
def test_arange_of_fractions_follows_the_formula(start: float, limit: float, delta: float, dtype: str) -> None:
    count = max(math.ceil((limit - start) / delta), 0)
    both(bounds(dtype, start, limit, delta), np.array([start + i * delta for i in range(count)]).astype(dtype))


@settings(max_examples=30)
@given(
    st.floats(-50, 50, width=32),
    st.floats(-50, 50, width=32),
    st.floats(0.25, 9, width=32),
    st.sampled_from([1, -1]),
    st.sampled_from(["int16", "int32", "int64", "float32", "float64"]),
)
def test_arange_equals_onnxruntime(start: float, limit: float, delta: float, sign: int, dtype: str) -> None:
    """onnxruntime adds up where ONNX multiplies, so that floats drift apart a little."""
    operands = bounds(dtype, start, limit, sign * (delta if dtype.startswith("float") else math.ceil(delta)))
    (wanted,) = onnxruntime_node("Range", operands)
    check_results(ARANGE_COUNT, operands, [np.array(wanted.size)])
    check_results(ARANGE, operands, [wanted], rtol=1e-5, atol=1e-4, count=wanted.size)


@pytest.mark.parametrize(("start", "limit"), [(-0.1, 2.9), (0.1, 3.1), (-0.3, 32.7)])
def test_the_ends_of_single_floats_are_not_rounded_to_single_again(start: float, limit: float) -> None:
    operands = bounds("float32", start, limit, 1)
    (wanted,) = onnxruntime_node("Range", operands)
    check_results(ARANGE_COUNT, operands, [np.array(wanted.size)])


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_long_arange_does_not_drift(dtype: str) -> None:
    wanted = np.arange(20_000) * 3 - 7
    both(bounds(dtype, -7, 59_993, 3), wanted.astype(dtype))


def test_arange_works_at_the_ends_of_integer_types() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    both(bounds("int64", high - 2, high, 1), np.array([high - 2, high - 1]))
    both(bounds("int64", low, high, 2**62), np.array([low, low + 2**62, 0, 2**62]))
    both(bounds("uint64", 2**64 - 4, 2**64 - 1, 2), np.array([2**64 - 4, 2**64 - 2], np.uint64))


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("int64", (0, 3, 0)),
        ("float32", (0, 3, 0)),
        ("float32", (0, 3, np.nan)),
        ("float64", (0, np.inf, 1)),
        ("float16", (-np.inf, 0, 1)),
        ("float64", (-1e308, 1e308, 1e-300)),
        ("float32", (-3e38, 3e38, 1)),
        ("uint64", (0, 2**64 - 1, 1)),
    ],
)
def test_arange_refuses_values_that_are_no_range_when_it_runs(dtype: str, numbers: tuple[float, ...]) -> None:
    operands = bounds(dtype, *numbers)
    with np.errstate(all="ignore"):
        with pytest.raises(DataError, match="in steps of"):
            evaluate(ARANGE_COUNT, *operands)
        with pytest.raises(DataError, match="in steps of"):
            evaluate(ARANGE, *operands, count=3)


def test_arange_refuses_another_count_than_was_given() -> None:
    with pytest.raises(CountError, match="3 elements are there, and 4 were said to be"):
        evaluate(ARANGE, *bounds("int64", 0, 3, 1), count=4)


def test_arange_allocates_nothing() -> None:
    check_no_allocation(ARANGE, bounds("float32", 0, 1e5, 1), count=100_000)
    check_no_allocation(ARANGE, bounds("int64", 0, 10**5, 1), count=100_000)


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ([np.array(0), np.array(1.0), np.array(1)], {"count": 1}, "of one dtype"),
        ([np.array(True)] * 3, {"count": 1}, "takes numbers"),
        ([np.array([0, 1]), np.array(1), np.array(1)], {"count": 1}, "one element"),
        ([np.array(0), np.array(1), np.array(1)], {"count": -1}, "count -1"),
    ],
)
def test_arange_refuses_operands_that_do_not_fit(operands: list[Array], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(ARANGE, *operands, **attrs)
