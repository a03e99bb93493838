"""Kernels of operators that are gradients: their formulas, any strides, permitted overwrites, no allocation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.common.indices import IndexRangeError
from ops.elementwise.activation_gradients import (
    CLIP_GRADIENT,
    HARD_SIGMOID_GRADIENT,
    HARD_SWISH_GRADIENT,
    LEAKY_RELU_GRADIENT,
    PRELU_GRADIENT,
    RELU_GRADIENT,
    SHRINK_GRADIENT,
    SOFTSIGN_GRADIENT,
    TANH_GRADIENT,
)
from ops.elementwise.smooth_gradients import (
    ELU_GRADIENT,
    GELU_GRADIENT,
    MISH_GRADIENT,
    SIGMOID_GRADIENT,
    SOFTPLUS_GRADIENT,
    SWISH_GRADIENT,
)
from ops.index.gather_gradient import GATHER_ELEMENTS_GRADIENT, GATHER_GRADIENT, GATHER_ND_GRADIENT
from ops.movement.slicing import SLICE_GRADIENT
from ops.reduce.softmax_gradients import LOG_SOFTMAX_GRADIENT, SOFTMAX_GRADIENT
from ops.schema.schema import OpSchema, evaluate
from ops.spatial.resize import RESIZE_GRADIENT
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, check_strides

DTYPES = ("float16", "float32", "float64")
X = np.array([[-4.0, -3.0, -1.0, -0.5, -0.125, -0.0], [0.0, 0.25, 0.5, 1.0, 3.5, 5.0]])
DY = np.array([[1.0, -2.0, 3.0, 0.5, -0.25, 1.5], [2.0, 1.0, -3.0, 0.75, 1.25, -1.0]])
Formula = Callable[[Array], Any]


def _gate(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _mish(x: Array) -> Any:
    w = np.tanh(np.log1p(np.exp(x)))
    return w + x * (1 - w * w) * _gate(x)


def _gelu(x: Array) -> Any:
    c = np.sqrt(2 / np.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    return (1 + t) / 2 + x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x) / 2


SLOPES: list[tuple[OpSchema, dict[str, Any], Formula]] = [
    (RELU_GRADIENT, {}, lambda y: y > 0),
    (RELU_GRADIENT, {"threshold": -2.0}, lambda y: y > -2),
    (LEAKY_RELU_GRADIENT, {"alpha": 0.25}, lambda y: np.where(y > 0, 1, 0.25)),
    (HARD_SIGMOID_GRADIENT, {"alpha": 0.5}, lambda y: 0.5 * ((y > 0) & (y < 1))),
    (SHRINK_GRADIENT, {}, lambda y: y != 0),
    (HARD_SWISH_GRADIENT, {}, lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))),
    (SOFTSIGN_GRADIENT, {}, lambda y: (1 - np.abs(y)) ** 2),
    (TANH_GRADIENT, {}, lambda y: 1 - y * y),
    (SIGMOID_GRADIENT, {}, lambda y: y * (1 - y)),
    (SOFTPLUS_GRADIENT, {}, lambda y: 1 - np.exp(-y)),
    (ELU_GRADIENT, {"alpha": 0.5, "gamma": 2.0}, lambda y: np.where(y > 0, 2, y + 1)),
    (ELU_GRADIENT, {"alpha": 2.0, "width": 2.0}, lambda y: np.where(y > 0, 1, y / 2 + 1)),
    (SWISH_GRADIENT, {"alpha": 2.0}, lambda x: _gate(2 * x) * (1 + 2 * x * (1 - _gate(2 * x)))),
    (GELU_GRADIENT, {"approximate": "tanh"}, _gelu),
    (MISH_GRADIENT, {}, _mish),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", range(len(SLOPES)))
def test_activation_gradients_follow_their_formulas(case: int, dtype: str) -> None:
    schema, attrs, formula = SLOPES[case]
    dy, x = DY.astype(dtype), X.astype(dtype)
    eps = float(np.finfo(dtype).eps)
    wanted = (DY * formula(x.astype(np.float64))).astype(dtype)
    check_kernels(schema, [dy, x], [wanted], rtol=8 * eps, atol=8 * eps, **attrs)
    assert check_overwrites(schema, [dy, x], **attrs) == 2


@given(
    st.sampled_from([RELU_GRADIENT, LEAKY_RELU_GRADIENT, SHRINK_GRADIENT]),
    st.lists(st.floats(width=32), min_size=1, max_size=8),
)
def test_activation_gradients_pass_the_gradient_on_unchanged(schema: OpSchema, values: list[float]) -> None:
    dy = np.array(values, np.float32)
    (through,) = evaluate(schema, dy, np.ones_like(dy))
    assert through.tobytes() == dy.tobytes()


@given(st.sampled_from([RELU_GRADIENT, SHRINK_GRADIENT]), st.lists(st.floats(width=32), min_size=1, max_size=8))
def test_activation_gradients_are_zero_where_closed_even_for_infinite_gradients(
    schema: OpSchema, values: list[float]
) -> None:
    dy = np.array(values, np.float32)
    (stopped,) = evaluate(schema, dy, np.zeros_like(dy))
    assert not stopped.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_activation_gradients_with_more_inputs_follow_their_formulas(dtype: str) -> None:
    dy, x, slope = DY.astype(dtype), X.astype(dtype), np.array([0.5, 0.25, 2, 1, -1, 0], dtype)
    check_kernels(PRELU_GRADIENT, [dy, x, slope], [np.where(x > 0, dy, dy * slope)])
    lo, hi = np.array(-1, dtype), np.array([3.5], dtype)
    check_kernels(CLIP_GRADIENT, [dy, x, lo, hi], [np.where((x > lo) & (x < hi), dy, dy * 0)])
    single = np.array([0.5], dtype)
    assert check_overwrites(CLIP_GRADIENT, [single, single, single, single]) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_gradients_follow_their_formulas(axis: int, dtype: str) -> None:
    dy = np.stack([DY, 2 * DY - 1]).astype(dtype)
    logits = np.stack([X, X[::-1]])
    y = np.exp(logits) / np.exp(logits).sum(axis, keepdims=True)
    eps = float(np.finfo(dtype).eps)
    rounded = y.astype(dtype).astype(np.float64)
    wanted = rounded * (dy - (dy * rounded).sum(axis, keepdims=True))
    arrays = [dy, y.astype(dtype)]
    check_kernels(SOFTMAX_GRADIENT, arrays, [wanted.astype(dtype)], rtol=8 * eps, atol=8 * eps, axis=axis)
    logs = np.log(y).astype(dtype)
    wanted = dy - np.exp(logs.astype(np.float64)) * dy.astype(np.float64).sum(axis, keepdims=True)
    check_kernels(LOG_SOFTMAX_GRADIENT, [dy, logs], [wanted.astype(dtype)], rtol=8 * eps, atol=16 * eps, axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gathered_rows_are_added_where_they_came_from(dtype: str) -> None:
    dy = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    at = np.array([0, -1, 0])
    wanted = np.zeros((2, 5, 4), dtype)
    for j, row in enumerate(at):
        wanted[:, row] += dy[:, j]
    check_kernels(GATHER_GRADIENT, [dy, at], [wanted], shape=(2, 5, 4), axis=1)
    tuples = np.array([[[0, 1], [1, 1], [0, 1]], [[1, -1], [0, 0], [1, 2]]], np.int32)
    wanted = np.zeros((2, 3, 4), dtype)
    np.add.at(wanted, (tuples[..., 0], tuples[..., 1]), dy)
    check_kernels(GATHER_ND_GRADIENT, [dy, tuples], [wanted], shape=(2, 3, 4))
    here = np.array([[0, 1, 0, -1], [2, 2, 2, 2]])
    wanted = np.zeros((3, 4), dtype)
    np.add.at(wanted, (here, np.arange(4)), dy[:, 0])
    check_kernels(GATHER_ELEMENTS_GRADIENT, [dy[:, 0].copy(), here], [wanted], shape=(3, 4))


def test_a_sum_of_many_halves_is_rounded_once() -> None:
    dy = np.full((5000, 1), 0.5, np.float16)
    (gradient,) = evaluate(GATHER_GRADIENT, dy, np.zeros(5000, np.int64), shape=(1, 1))
    assert gradient.tolist() == [[2500.0]]


def test_gather_gradient_refuses_an_index_outside_its_axis() -> None:
    with pytest.raises(IndexRangeError):
        evaluate(GATHER_GRADIENT, np.ones((1, 2)), np.array([3]), shape=(3, 2))


def test_slice_and_resize_gradients_are_the_way_back() -> None:
    dy = DY[:, :3].copy()
    wanted = np.zeros((2, 7))
    wanted[::-1, 1:7:2] = dy
    check_kernels(SLICE_GRADIENT, [dy], [wanted], shape=(2, 7), starts=(-1, 1), ends=(-9, 7), steps=(-1, 2))
    wanted = np.array([DY[:, :3].sum(), DY[:, 3:].sum()]).reshape(1, 2)
    check_kernels(RESIZE_GRADIENT, [DY], [wanted], rtol=1e-12, shape=(1, 2), sizes=(2, 6))
    check_kernels(RESIZE_GRADIENT, [DY[:1, :4]], [DY[:1, :4]], shape=(1, 4), sizes=(1, 4))
    check_kernels(RESIZE_GRADIENT, [np.zeros((0, 4))], [np.zeros((2, 2))], shape=(2, 2), sizes=(0, 4))


@pytest.mark.parametrize(
    ("schema", "shapes", "attrs"),
    [
        (RELU_GRADIENT, [(2, 3), (3, 2)], {}),
        (SOFTMAX_GRADIENT, [(2, 3), (3, 2)], {}),
        (SOFTMAX_GRADIENT, [(2, 3), (2, 3)], {"axis": 2}),
        (PRELU_GRADIENT, [(2, 3), (6,), (1,)], {}),
        (SLICE_GRADIENT, [(2, 3)], {"shape": (2, 4), "starts": (0,), "ends": (3,), "axes": (0,)}),
        (RESIZE_GRADIENT, [(2, 3)], {"shape": (2, 4), "sizes": (2, 4)}),
    ],
)
def test_gradient_kernels_refuse_operands_that_do_not_fit(
    schema: OpSchema, shapes: list[Any], attrs: dict[str, Any]
) -> None:
    with pytest.raises(OpError):
        evaluate(schema, *(np.ones(s) for s in shapes), **attrs)


@pytest.mark.parametrize(
    ("schema", "shape", "attrs"),
    [
        (GATHER_GRADIENT, (2, 3), {"shape": (5, 4)}),
        (GATHER_ELEMENTS_GRADIENT, (2, 3), {"shape": (5, 4)}),
        (GATHER_ELEMENTS_GRADIENT, (2,), {"shape": (5, 4)}),
        (GATHER_ND_GRADIENT, (2, 3), {"shape": (5, 4)}),
    ],
)
def test_gather_gradient_refuses_rows_of_another_shape(
    schema: OpSchema, shape: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    with pytest.raises(OpError):
        evaluate(schema, np.ones(shape), np.zeros((2, 1), np.int64), **attrs)


def _inputs(schema: OpSchema, dtype: str) -> tuple[list[Array], dict[str, Any]]:
    """Returns large inputs."""
    rng = np.random.default_rng(0)
    dy, x = (rng.normal(size=(256, 512)).astype(dtype) for _ in range(2))
    rows = {"shape": (300, 512)}
    odd = {"shape": (600, 512), "starts": (1,), "ends": (513,), "steps": (2,)}
    special: dict[OpSchema, tuple[list[Array], dict[str, Any]]] = {
        CLIP_GRADIENT: ([dy, x, np.array(-1, dtype), np.array(1, dtype)], {}),
        PRELU_GRADIENT: ([dy, x, np.ones(512, dtype)], {}),
        GATHER_GRADIENT: ([dy, rng.integers(0, 300, 256)], rows),
        GATHER_ELEMENTS_GRADIENT: ([dy, rng.integers(0, 300, dy.shape)], rows),
        GATHER_ND_GRADIENT: ([dy, rng.integers(0, 20, (256, 2))], {"shape": (20, 20, 512)}),
        SLICE_GRADIENT: ([dy], odd),
        RESIZE_GRADIENT: ([dy], {"shape": (256, 256), "sizes": (256, 512), "mode": "linear"}),
    }
    return special.get(schema, ([dy, x], {}))


_ALL = [
    *dict.fromkeys(schema for schema, _, _ in SLOPES),
    *(CLIP_GRADIENT, PRELU_GRADIENT, SOFTMAX_GRADIENT, LOG_SOFTMAX_GRADIENT, SLICE_GRADIENT, RESIZE_GRADIENT),
    *(GATHER_GRADIENT, GATHER_ELEMENTS_GRADIENT, GATHER_ND_GRADIENT),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("schema", _ALL, ids=lambda s: s.name)
def test_gradient_kernels_allocate_nothing(schema: OpSchema, dtype: str) -> None:
    arrays, attrs = _inputs(schema, dtype)
    check_no_allocation(schema, arrays, **attrs)


@pytest.mark.parametrize("schema", [GELU_GRADIENT], ids=lambda s: s.name)
def test_broadcast_gradients_are_read_where_they_lie(schema: OpSchema) -> None:
    check_strides(schema, [np.broadcast_to(DY[0], (4, 6)), np.tile(X, (2, 1))])
