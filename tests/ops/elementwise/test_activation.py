from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ops.elementwise.activation import (
    CLIP,
    HARD_SIGMOID,
    HARD_SWISH,
    LEAKY_RELU,
    PRELU,
    RELU,
    SHRINK,
    SOFTSIGN,
    TANH,
    THRESHOLDED_RELU,
)
from ops.schema.schema import Binding, OpSchema, evaluate
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import (
    check_kernels,
    check_no_allocation,
    check_overwrites,
    check_results,
    garbage_for,
    same,
    sign,
)

X = np.array([[-40.0, -3.0, -1.0, -0.5, -0.1, -0.0], [0.0, 0.2, 0.5, 1.0, 3.5, 40.0]])
DTYPES = ("float16", "float32", "float64")
CASES: list[tuple[OpSchema, dict[str, Any], Callable[[Array], Array]]] = [
    (RELU, {}, lambda x: np.where(x > 0, x, 0)),
    (TANH, {}, lambda x: 1 - 2 / (np.exp(2 * x) + 1)),
    (LEAKY_RELU, {"alpha": 0.1}, lambda x: np.where(x > 0, x, 0.1 * x)),
    (LEAKY_RELU, {"alpha": 3.0}, lambda x: np.where(x > 0, x, 3.0 * x)),
    (LEAKY_RELU, {"alpha": -0.5}, lambda x: np.where(x > 0, x, -0.5 * x)),
    (HARD_SIGMOID, {}, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    (HARD_SIGMOID, {"alpha": 0.5, "beta": 0.6}, lambda x: np.clip(0.5 * x + 0.6, 0, 1)),
    (HARD_SWISH, {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (SOFTSIGN, {}, lambda x: x / (1 + np.abs(x))),
    (THRESHOLDED_RELU, {}, lambda x: np.where(x > 1, x, 0)),
    (THRESHOLDED_RELU, {"alpha": -2.0}, lambda x: np.where(x > -2, x, 0)),
    (SHRINK, {}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    (SHRINK, {"bias": 1.5, "lambd": 1.0}, lambda x: np.where(x < -1, x + 1.5, np.where(x > 1, x - 1.5, 0))),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_piecewise_linear_activations_follow_their_formulas(case: int, dtype: str) -> None:
    schema, attrs, formula = CASES[case]
    x = X.astype(dtype)
    eps = float(np.finfo(dtype).eps)
    check_kernels(schema, [x], [formula(x.astype(np.float64)).astype(dtype)], rtol=4 * eps, atol=eps, **attrs)
    assert check_overwrites(schema, [x], **attrs) == 1


def test_relu_keeps_nan_and_infinity_and_takes_signed_integers() -> None:
    (y,) = evaluate(RELU, np.array([np.nan, np.inf, -np.inf], np.float32))
    same(y, np.array([np.nan, np.inf, 0], np.float32))
    check_kernels(RELU, [np.array([-128, 0, 127], np.int8)], [np.array([0, 0, 127], np.int8)])
    with pytest.raises(DtypeError):
        evaluate(RELU, np.zeros(2, np.uint8))


@pytest.mark.parametrize("shape", [(2, 6), (6,), (2, 1), (1, 1), ()])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_the_slope_of_prelu_broadcasts_to_x(shape: tuple[int, ...], dtype: str) -> None:
    x = (X if dtype != "int32" else np.round(X)).astype(dtype)
    slope = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    check_kernels(PRELU, [x, slope], [np.where(x > 0, x, x * slope).astype(dtype)])


def test_prelu_may_overwrite_x_when_the_slope_is_x_itself() -> None:
    for kernel in PRELU.kernels:
        shared = np.array([-2.0, 3.0], np.float32)
        signature = sign(PRELU, [shared, shared], {})
        kernel.bind(Binding(signature, (shared, shared), (shared,), garbage_for(kernel, signature)))()
        assert shared.tolist() == [4.0, 3.0]


def test_a_slope_larger_than_x_is_refused() -> None:
    with pytest.raises(ShapeError, match="slope"):
        evaluate(PRELU, np.zeros(3, np.float32), np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8", "int64"])
def test_clip_holds_x_between_its_bounds(dtype: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    wanted = np.minimum(np.maximum(x, 3), 8).astype(dtype)
    for bound_shape in ((), (1,)):
        bounds = [np.full(bound_shape, v, dtype) for v in (3, 8)]
        check_kernels(CLIP, [x, *bounds], [wanted])


def test_a_bound_of_clip_in_a_row_of_one_serves_a_scalar() -> None:
    check_results(
        CLIP, [np.array(9, np.float32), np.ones(1, np.float32), np.full((1,), 5, np.float32)], [np.array(5, np.float32)]
    )


def test_clip_takes_the_upper_bound_where_bounds_cross() -> None:
    check_results(CLIP, [np.array([0.0, 9.0]), np.array(5.0), np.array(2.0)], [np.array([2.0, 2.0])])


def test_clip_refuses_a_bound_of_many_numbers() -> None:
    with pytest.raises(ShapeError, match="scalar"):
        evaluate(CLIP, np.zeros(3), np.zeros(3), np.zeros(()))


def test_clip_overwrites_no_scalar_because_it_might_be_a_bound() -> None:
    assert check_overwrites(CLIP, [np.array(1.0)] * 3) == 0
    assert check_overwrites(CLIP, [np.ones(3), np.array(1.0), np.array(2.0)]) == 1


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_activation_kernels_allocate_nothing(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((400, 300)).astype(dtype)
    for schema in (RELU, TANH, LEAKY_RELU, HARD_SIGMOID, HARD_SWISH, SOFTSIGN, THRESHOLDED_RELU, SHRINK):
        check_no_allocation(schema, [x])
        check_no_allocation(schema, [x[:, ::-1]])
    check_no_allocation(PRELU, [x, x[:1]])
    check_no_allocation(CLIP, [x, x[0, 0].reshape(()), x[0, 1].reshape(())])
