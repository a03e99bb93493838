"""Triangles, identity matrices, one-hot vectors, hardmax."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.movement.generate import EYE_LIKE, HARDMAX, ONE_HOT, TRILU
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results, check_strides
from tests.helpers.ops.sample_arrays import SEEDS

SIZES = st.integers(0, 5)


@given(
    st.tuples(SIZES, SIZES),
    st.integers(-6, 6),
    st.booleans(),
    st.sampled_from(["bool", "float16", "float32", "int64"]),
    SEEDS,
)
def test_trilu_equals_numpy(shape: tuple[int, int], k: int, upper: bool, dtype: str, seed: int) -> None:
    x = np.random.default_rng(seed).integers(1, 9, (2, *shape)).astype(dtype)
    wanted = np.triu(x, k) if upper else np.tril(x, k)
    check_kernels(TRILU, [x], [wanted], upper=upper, k=k)


def test_trilu_writes_zero_outside_the_triangle_even_over_nan() -> None:
    (y,) = evaluate(TRILU, np.full((2, 2), np.nan))
    assert y[1, 0] == 0
    assert np.isnan(y[0, 1])


@given(SIZES, SIZES, st.integers(-6, 6), st.sampled_from(["float32", "int8", "bool", None]))
def test_eye_like_equals_numpy(m: int, n: int, k: int, dtype: str | None) -> None:
    wanted = np.eye(m, n, k, dtype or np.float64) if m and n else np.zeros((m, n), dtype or np.float64)
    check_kernels(EYE_LIKE, [np.full((m, n), 7.0)], [wanted], k=k, dtype=dtype)


@given(
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
    st.integers(0, 5),
    st.sampled_from(["int8", "int64", "uint16", "float32"]),
    st.data(),
    SEEDS,
)
def test_one_hot_marks_where_the_index_is(
    shape: tuple[int, ...], depth: int, dtype: str, data: st.DataObject, seed: int
) -> None:
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    low = 0 if dtype == "uint16" else -7
    indices = np.random.default_rng(seed).integers(low, 8, shape).astype(dtype)
    values = np.array([2, 5], np.float16)
    place = axis % (len(shape) + 1)
    wanted = np.full((*shape[:place], depth, *shape[place:]), 2, np.float16)
    for at in np.ndindex(*shape):
        if -depth <= indices[at] < depth:
            wanted[(*at[:place], int(indices[at]) % depth, *at[place:])] = 5
    check_results(ONE_HOT, [indices, values], [wanted], depth=depth, axis=axis)
    if shape:
        check_strides(ONE_HOT, [indices, values], depth=depth, axis=axis)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), st.data(), SEEDS)
def test_hardmax_marks_the_first_greatest(shape: tuple[int, ...], data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(seed).integers(0, 3, shape).astype(np.float32)
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, np.expand_dims(x.argmax(axis), axis), 1, axis)
    check_kernels(HARDMAX, [x], [wanted], axis=axis)


def test_trilu_eye_like_hardmax_and_one_hot_allocate_nothing() -> None:
    random = np.random.default_rng(0)
    x = random.random((300, 200), np.float32)
    check_no_allocation(TRILU, [x.T], k=3)
    check_no_allocation(EYE_LIKE, [x], k=3)
    check_no_allocation(HARDMAX, [x], axis=0)
    check_no_allocation(HARDMAX, [x], axis=1)
    indices, values = random.integers(-50, 50, (200, 100)), np.array([0, 1], np.float32)
    check_no_allocation(ONE_HOT, [indices, values], depth=40, axis=1)
    check_no_allocation(ONE_HOT, [indices.astype(np.int32).T, values], depth=40)


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (TRILU, [np.zeros(3)], {}, "takes matrices"),
        (EYE_LIKE, [np.zeros((2, 2, 2))], {}, "takes a matrix"),
        (ONE_HOT, [np.zeros(3, bool), np.zeros(2)], {"depth": 3}, "must be numbers"),
        (ONE_HOT, [np.zeros(3), np.zeros(3)], {"depth": 3}, "off and on"),
        (ONE_HOT, [np.zeros(3), np.zeros(2)], {"depth": -3}, "depth -3 is negative"),
        (ONE_HOT, [np.zeros(3), np.zeros(2)], {"depth": 3, "axis": 2}, "axis 2 does not exist"),
        (HARDMAX, [np.zeros(3, int)], {}, "floating-point"),
        (HARDMAX, [np.zeros((3, 0))], {}, "no element to choose"),
    ],
)
def test_trilu_eye_like_hardmax_and_one_hot_refuse_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
