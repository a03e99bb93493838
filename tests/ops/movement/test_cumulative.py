"""Running sums and reversed sequences, against plain loops."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.common.indices import IndexRangeError
from ops.movement.cumulative import CUM_PROD, CUM_SUM, REVERSE_SEQUENCE
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation
from tests.helpers.ops.sample_arrays import SEEDS

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.sampled_from(["int8", "int64", "float16", "float32"]), st.booleans(), st.booleans(), st.data())
def test_cum_sum_equals_plain_sums(
    shape: tuple[int, ...], dtype: str, exclusive: bool, reverse: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(data.draw(SEEDS)).integers(-5, 6, shape).astype(dtype)
    moved, wanted = np.moveaxis(x, axis, 0), np.empty_like(x)
    for i in range(shape[axis]):
        part = moved[i + exclusive :] if reverse else moved[: i + (not exclusive)]
        np.moveaxis(wanted, axis, 0)[i] = part.astype(np.float64).sum(0).astype(dtype)
    check_kernels(CUM_SUM, [x], [wanted], axis=axis, exclusive=exclusive, reverse=reverse)


@given(SHAPES, st.sampled_from(["int8", "int64", "float16", "float64"]), st.booleans(), st.booleans(), st.data())
def test_cum_prod_equals_plain_products(
    shape: tuple[int, ...], dtype: str, exclusive: bool, reverse: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(data.draw(SEEDS)).integers(-3, 4, shape).astype(dtype)
    moved, wanted = np.moveaxis(x, axis, 0), np.empty_like(x)
    for i in range(shape[axis]):
        part = moved[i + exclusive :] if reverse else moved[: i + (not exclusive)]
        np.moveaxis(wanted, axis, 0)[i] = part.astype(np.float64).prod(0).astype(dtype)
    check_kernels(CUM_PROD, [x], [wanted], axis=axis, exclusive=exclusive, reverse=reverse)


def test_cum_sum_of_small_integers_wraps_round() -> None:
    (y,) = evaluate(CUM_SUM, np.array([100, 100], np.int8), axis=0)
    assert y.tolist() == [100, -56]


@given(st.integers(0, 4), st.integers(0, 5), st.booleans(), SEEDS)
def test_reverse_sequence_turns_sequences_up_to_their_length(
    batch: int, steps: int, batch_first: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    x, lengths = random.random((batch, steps, 2), np.float32), random.integers(0, steps + 1, batch)
    wanted = x.copy()
    for b, n in enumerate(lengths.tolist()):
        wanted[b, :n] = x[b, :n][::-1]
    if batch_first:
        check_kernels(REVERSE_SEQUENCE, [x, lengths], [wanted], batch_axis=0, time_axis=1)
    else:
        turned = np.ascontiguousarray(x.transpose(1, 0, 2))
        check_kernels(REVERSE_SEQUENCE, [turned, lengths], [wanted.transpose(1, 0, 2)])


def test_reverse_sequence_refuses_a_length_beyond_its_axis() -> None:
    with pytest.raises(IndexRangeError, match="length 4 in 3 steps"):
        evaluate(REVERSE_SEQUENCE, np.zeros((3, 1)), np.array([4]))


def test_cum_sum_and_reverse_sequence_allocate_nothing() -> None:
    random = np.random.default_rng(0)
    x = random.random((200, 300), np.float32)
    for axis in (0, 1):
        check_no_allocation(CUM_SUM, [x], axis=axis)
        check_no_allocation(CUM_PROD, [x], axis=axis, exclusive=True)
        check_no_allocation(CUM_SUM, [(x * 9).astype(np.int32).T], axis=axis, exclusive=True, reverse=True)
    check_no_allocation(REVERSE_SEQUENCE, [x, random.integers(0, 200, 300)])
    check_no_allocation(REVERSE_SEQUENCE, [x.T, random.integers(0, 200, 300)], batch_axis=0, time_axis=1)


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (CUM_SUM, [np.zeros(3, bool)], {"axis": 0}, "takes numbers"),
        (CUM_SUM, [np.zeros(3)], {"axis": 1}, "axis 1 does not exist"),
        (CUM_PROD, [np.zeros(3, bool)], {"axis": 0}, "takes numbers"),
        (REVERSE_SEQUENCE, [np.zeros(3), np.zeros(3, int)], {}, "must be 0 and 1"),
        (REVERSE_SEQUENCE, [np.zeros((3, 2, 2)), np.zeros(3, int)], {"time_axis": 2}, "must be 0 and 1"),
        (REVERSE_SEQUENCE, [np.zeros((3, 2)), np.zeros(3, int)], {}, r"must be int64\[2\]"),
    ],
)
def test_cum_sum_and_reverse_sequence_refuse_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
