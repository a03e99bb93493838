import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.common.blocks import BLOCK_BYTES
from ops.reduce.reduce import (
    OPS,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.kernel_checks import check_no_allocation, check_results, check_strides, same

Row = list[float]
FORMULAS: list[tuple[OpSchema, Callable[[Row], float]]] = [
    (REDUCE_SUM, math.fsum),
    (REDUCE_MEAN, lambda v: math.fsum(v) / len(v)),
    (REDUCE_MAX, max),
    (REDUCE_MIN, min),
    (REDUCE_PROD, math.prod),
    (REDUCE_L1, lambda v: math.fsum(map(abs, v))),
    (REDUCE_L2, lambda v: math.sqrt(math.fsum(x * x for x in v))),
    (REDUCE_SUM_SQUARE, lambda v: math.fsum(x * x for x in v)),
    (REDUCE_LOG_SUM, lambda v: math.log(math.fsum(v))),
    (REDUCE_LOG_SUM_EXP, lambda v: math.log(math.fsum(map(math.exp, v)))),
]
AXES: list[tuple[int, ...] | None] = [None, (0,), (-1,), (0, 2), (2, 0), (1,), (0, 1, 2), ()]
by_name = pytest.mark.parametrize(("schema", "formula"), FORMULAS, ids=lambda v: getattr(v, "name", ""))


def reference(x: Array, axes: tuple[int, ...] | None, formula: Callable[[Row], float], keepdims: bool) -> Array:
    """Computes the formula on each group of elements, group by group, in Python's floats."""
    chosen = set(range(x.ndim)) if axes is None else {a % x.ndim for a in axes}
    kept = [i for i in range(x.ndim) if i not in chosen]
    rows = x.transpose(*kept, *sorted(chosen)).reshape(*(x.shape[i] for i in kept), -1)
    values = [formula(rows[index].tolist()) for index in np.ndindex(*rows.shape[:-1])]
    shape = [1 if i in chosen else n for i, n in enumerate(x.shape) if keepdims or i not in chosen]
    return np.array(values).reshape(shape)


@by_name
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", AXES)
def test_reductions_follow_their_formulas(
    schema: OpSchema, formula: Callable[[Row], float], axes: tuple[int, ...] | None, keepdims: bool
) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4))
    for dtype, digits in ((np.float16, 2e-3), (np.float32, 1e-6), (np.float64, 1e-14)):
        wanted = reference(x.astype(dtype), axes, formula, keepdims).astype(dtype)
        check_results(schema, [x.astype(dtype)], [wanted], digits, digits, axes=axes, keepdims=keepdims)
        check_strides(schema, [x.astype(dtype)], digits, digits, axes=axes, keepdims=keepdims)


@by_name
def test_reductions_of_integers_are_truncated_toward_zero(schema: OpSchema, formula: Callable[[Row], float]) -> None:
    x = np.array([[1, 2, 3, 5], [4, 4, 1, 1]])
    for dtype in (np.int32, np.int64, np.uint32):
        wanted = np.trunc(reference(x, (1,), formula, True)).astype(dtype)
        check_results(schema, [x.astype(dtype)], [wanted], axes=(1,))
        check_strides(schema, [x.astype(dtype)], axes=(1,))


def test_a_negative_mean_of_integers_is_truncated_not_floored() -> None:
    assert evaluate(REDUCE_MEAN, np.array([-1, -2], np.int32), keepdims=False)[0] == -1


def test_the_extremes_of_bools_are_or_and_and() -> None:
    x = np.array([[True, False], [False, False], [True, True]])
    assert evaluate(REDUCE_MAX, x, axes=(1,), keepdims=0)[0].tolist() == [True, False, True]
    assert evaluate(REDUCE_MIN, x, axes=(1,), keepdims=0)[0].tolist() == [False, False, True]


EMPTY: list[tuple[OpSchema, str, float]] = [
    (REDUCE_SUM, "float32", 0.0),
    (REDUCE_PROD, "float32", 1.0),
    (REDUCE_MAX, "float32", -np.inf),
    (REDUCE_MIN, "float32", np.inf),
    (REDUCE_MAX, "int8", -128),
    (REDUCE_MIN, "uint8", 255),
    (REDUCE_MAX, "bool", False),
    (REDUCE_MIN, "bool", True),
    (REDUCE_MEAN, "float32", np.nan),
    (REDUCE_L1, "float16", 0.0),
    (REDUCE_L2, "float32", 0.0),
    (REDUCE_SUM_SQUARE, "int32", 0),
    (REDUCE_LOG_SUM, "float32", -np.inf),
    (REDUCE_LOG_SUM_EXP, "float32", -np.inf),
    (REDUCE_LOG_SUM_EXP, "float16", -np.inf),
]


@pytest.mark.parametrize(("schema", "dtype", "wanted"), EMPTY, ids=lambda v: getattr(v, "name", str(v)))
def test_reductions_of_no_elements_give_the_neutral_element(schema: OpSchema, dtype: str, wanted: float) -> None:
    check_results(schema, [np.zeros((2, 0, 3), dtype)], [np.full((2, 1, 3), wanted, dtype)], axes=(1,))
    check_results(schema, [np.zeros((2, 0, 3), dtype)], [np.zeros((0, 3), dtype)], axes=(0,), keepdims=False)


@by_name
def test_a_scalar_is_reduced_to_a_scalar(schema: OpSchema, formula: Callable[[Row], float]) -> None:
    check_results(schema, [np.array(2.0)], [np.array(formula([2.0]))], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_log_sum_exp_neither_overflows_nor_loses_infinity(dtype: type[np.floating[Any]]) -> None:
    rows = [[1e4, 1e4], [-1e4, -1e4], [np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf], [np.nan, 0]]
    wanted = [1e4 + math.log(2), -1e4 + math.log(2), np.inf, 0, -np.inf, np.nan]
    eps = float(np.finfo(dtype).eps)
    check_results(
        REDUCE_LOG_SUM_EXP, [np.array(rows, dtype)], [np.array(wanted, dtype)], eps, axes=(1,), keepdims=False
    )


def test_sums_of_float16_do_not_overflow_on_the_way() -> None:
    x = np.full(300, 300, np.float16)
    assert float(evaluate(REDUCE_MEAN, x)[0][0]) == 300
    assert float(evaluate(REDUCE_L2, x)[0][0]) == pytest.approx(300 * math.sqrt(300), rel=1e-3)


@settings(max_examples=25)
@given(
    shape=st.lists(st.integers(1, 20), min_size=1, max_size=4).map(tuple),
    bits=st.integers(0, 15),
    schema=st.sampled_from([REDUCE_L1, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM_EXP]),
)
def test_reductions_of_many_blocks_equal_one_formula(shape: tuple[int, ...], bits: int, schema: OpSchema) -> None:
    x = np.random.default_rng(bits).standard_normal(shape)
    axes = tuple(i for i in range(len(shape)) if bits >> i & 1)
    total: Any = {
        "reduce_l1": lambda: np.sum(np.abs(x), axis=axes, keepdims=True),
        "reduce_sum_square": lambda: np.sum(x**2, axis=axes, keepdims=True),
        "reduce_log_sum_exp": lambda: np.log(np.sum(np.exp(x), axis=axes, keepdims=True)),
    }
    same(evaluate(schema, x, axes=axes)[0], total[schema.name](), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_the_workspace_is_a_block_beside_the_output(schema: OpSchema) -> None:
    for dtype in ("float16", "float32", "int32"):
        signature = schema.sign([TensorSpec((1000, 1000), np.dtype(dtype))], {"axes": (0,)})
        assert schema.kernel(signature).workspace(signature) <= BLOCK_BYTES + 2 * 8 * signature.y.size + 256


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_reductions_allocate_nothing(schema: OpSchema, dtype: str) -> None:
    x = np.random.default_rng(0).uniform(1, 2, (6, 10, 40, 30)).astype(dtype)
    for axes in (None, (0,), (2, 3), (0, 2)):
        check_no_allocation(schema, [x], axes=axes)
        check_no_allocation(schema, [x.transpose(0, 2, 3, 1)], axes=axes, keepdims=False)


def test_reductions_refuse_axes_that_do_not_exist() -> None:
    with pytest.raises(ShapeError, match="axis 2"):
        evaluate(REDUCE_SUM, np.zeros((2, 2)), axes=(2,))
    with pytest.raises(ShapeError, match="twice"):
        evaluate(REDUCE_SUM, np.zeros((2, 2)), axes=(0, -2))
    with pytest.raises(DtypeError, match="bool"):
        evaluate(REDUCE_SUM, np.zeros(2, bool))
