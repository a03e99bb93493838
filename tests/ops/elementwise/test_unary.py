import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ops.elementwise.unary import ABS, BITWISE_NOT, ERF, IS_INF, IS_NAN, NEG, NOT, OPS, ROUND, SIGN
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, same

SPECIAL = [0.0, -0.0, 0.3, -0.7, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.9, np.inf, -np.inf, np.nan]
TRIGONOMETRY = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "reciprocal": lambda v: 1.0 / v,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "erf": math.erf,
    **{n: getattr(math, n) for n in TRIGONOMETRY},
}
BY_NAME = {s.name: s for s in OPS}


def in_domain(function: Callable[[float], float], values: list[float]) -> list[tuple[float, float]]:
    """Returns points where Python's own function is defined and finite."""
    points = []
    for value in values:
        try:
            points.append((value, float(function(value))))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
    return [(x, y) for x, y in points if math.isfinite(y)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unary_functions_agree_with_the_math_module(name: str, dtype: str) -> None:
    values = [v for v in SPECIAL if math.isfinite(v)] + [0.25, 0.9, 1.75, 4.0]
    points = in_domain(FUNCTIONS[name], [float(np.dtype(dtype).type(v)) for v in values])
    assert len(points) > 3
    x, wanted = (np.array(column, dtype).reshape(1, -1) for column in zip(*points, strict=True))
    eps = float(np.finfo(dtype).eps)
    check_kernels(BY_NAME[name], [x], [wanted], rtol=6 * eps, atol=eps)
    assert check_overwrites(BY_NAME[name], [x]) == 1


def test_abs_neg_and_sign_take_integers() -> None:
    x = np.array([[-3, 0, 7]], np.int8)
    check_kernels(ABS, [x], [np.array([[3, 0, 7]], np.int8)])
    check_kernels(NEG, [x], [np.array([[3, 0, -7]], np.int8)])
    check_kernels(SIGN, [x], [np.array([[-1, 0, 1]], np.int8)])


def test_not_complements_bools_and_bitwise_not_complements_bits() -> None:
    check_kernels(NOT, [np.array([True, False])], [np.array([False, True])])
    check_kernels(BITWISE_NOT, [np.array([0, 1, 250], np.uint8)], [np.array([255, 254, 5], np.uint8)])


def test_round_gives_halves_to_the_even_neighbour() -> None:
    (y,) = evaluate(ROUND, np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32))
    assert y.tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_is_inf_sees_the_signs_that_it_should_see(negative: bool, positive: bool) -> None:
    x = np.array(SPECIAL, np.float32)
    wanted = np.array([(v == np.inf and positive) or (v == -np.inf and negative) for v in SPECIAL])
    check_kernels(IS_INF, [x], [wanted], detect_negative=negative, detect_positive=positive)


def test_is_nan_sees_nan_only() -> None:
    check_kernels(IS_NAN, [np.array(SPECIAL, np.float16)], [np.array([math.isnan(v) for v in SPECIAL])])


@given(
    x=hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0), elements=st.floats(-8, 8, width=32))
)
def test_erf_is_within_five_units_in_the_last_place(x: Array) -> None:
    (y,) = evaluate(ERF, x)
    wanted = np.array([math.erf(v) for v in x.reshape(-1).tolist()], np.float32).reshape(x.shape)
    same(y, wanted, rtol=5 * float(np.finfo(np.float32).eps))
    assert (np.abs(y) <= 1).all()


def test_erf_keeps_nan_and_saturates() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        with np.errstate(all="ignore"):
            (y,) = evaluate(ERF, np.array([np.nan, np.inf, -np.inf], dtype))
        assert np.isnan(y[0])
        assert y[1:].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_unary_kernels_allocate_nothing(schema: OpSchema) -> None:
    big: Any = np.random.default_rng(0).uniform(0.1, 0.9, (300, 200))
    kinds = {"not": "bool", "bitwise_not": "int64"}
    x = (big * 7).astype(kinds.get(schema.name, "float32"))
    x = np.tile(x, (4, 1)) if x.dtype == bool else x
    check_no_allocation(schema, [x])
    check_no_allocation(schema, [x.T])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unary_functions_take_scalars_and_empty_tensors(name: str, shape: tuple[int, ...]) -> None:
    for dtype in (np.float16, np.float32):
        (y,) = evaluate(BY_NAME[name], np.full(shape, 1.0 if name == "acosh" else 0.5, dtype))
        assert y.shape == shape
        assert np.isfinite(y).all()


def test_unary_functions_refuse_a_dtype_without_meaning() -> None:
    with pytest.raises(DtypeError, match=r"exp.*not int32"):
        evaluate(BY_NAME["exp"], np.zeros(2, np.int32))
    with pytest.raises(DtypeError, match=r"neg.*not uint8"):
        evaluate(NEG, np.zeros(2, np.uint8))
