import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ops.arg import ARG_MAX, ARG_MIN
from ops.blocks import BLOCK_BYTES
from ops.errors import DtypeError, ShapeError
from ops.schema import OpSchema, evaluate
from ops.spec import Array, TensorSpec
from tests.kernel_checks import check_no_allocation, check_results, check_strides, same

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def position(row: list[int], schema: OpSchema, last: bool) -> int:
    """The position that the operator should find in one row."""
    best = max(row) if schema is ARG_MAX else min(row)
    return len(row) - 1 - row[::-1].index(best) if last else row.index(best)


def reference(x: Array, axis: int, schema: OpSchema, last: bool) -> Array:
    """Row by row, in plain Python."""
    rows = np.moveaxis(x, axis, -1)
    found = [position(rows[index].tolist(), schema, last) for index in np.ndindex(*rows.shape[:-1])]
    return np.array(found, np.int64).reshape(rows.shape[:-1])


@given(
    x=hnp.arrays(np.int64, SHAPES, elements=st.integers(-2, 2)),
    dtype=st.sampled_from(["int8", "int64", "float16", "float32", "float64"]),
    schema=st.sampled_from([ARG_MAX, ARG_MIN]),
    last=st.booleans(),
    data=st.data(),
)
def test_the_first_or_the_last_extreme_of_each_row_is_found(
    x: Array, dtype: str, schema: OpSchema, last: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wanted = reference(x, axis, schema, last)
    operand = x.astype(dtype)
    check_results(schema, [operand], [wanted], axis=axis, keepdims=False, select_last_index=last)
    check_results(schema, [operand], [np.expand_dims(wanted, axis)], axis=axis, select_last_index=last)
    check_strides(schema, [operand], axis=axis, select_last_index=last)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_many_blocks_equal_one_search(axis: int, last: bool) -> None:
    x = np.random.default_rng(0).integers(0, 9, (30, 41, 50)).astype(np.float32)
    (y,) = evaluate(ARG_MAX, x, axis=axis, keepdims=False, select_last_index=last)
    same(y, reference(x, axis, ARG_MAX, last))


def test_a_row_longer_than_a_block_is_searched_at_once() -> None:
    x = np.zeros((2, 40000), np.float32)
    x[0, 39999] = x[1, 7] = x[1, 9] = 1
    assert evaluate(ARG_MAX, x, axis=1, keepdims=False, select_last_index=True)[0].tolist() == [39999, 9]
    assert evaluate(ARG_MAX, x.T, axis=0, keepdims=False)[0].tolist() == [39999, 7]


def test_the_workspace_is_a_block() -> None:
    for axis, most in ((0, BLOCK_BYTES), (1, 0)):
        signature = ARG_MAX.sign([TensorSpec((1000, 1000), np.dtype("float32"))], {"axis": axis})
        assert ARG_MAX.kernel(signature).workspace(signature) <= most


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_nothing_is_allocated_while_a_kernel_runs(axis: int, last: bool) -> None:
    x = np.random.default_rng(0).standard_normal((30, 40, 50)).astype(np.float32)
    for schema in (ARG_MAX, ARG_MIN):
        check_no_allocation(schema, [x], axis=axis, select_last_index=last)
        check_no_allocation(schema, [x[:, ::-1]], axis=axis, select_last_index=last)


def test_an_empty_axis_has_no_extreme_but_an_empty_tensor_may_have_none_to_find() -> None:
    with pytest.raises(ShapeError, match="empty"):
        evaluate(ARG_MAX, np.zeros((2, 0)), axis=1)
    same(evaluate(ARG_MAX, np.zeros((0, 2)), axis=1)[0], np.zeros((0, 1), np.int64))
    same(evaluate(ARG_MAX, np.zeros((2, 0)), axis=0)[0], np.zeros((1, 0), np.int64))


def test_bools_and_missing_axes_are_refused() -> None:
    with pytest.raises(DtypeError):
        evaluate(ARG_MAX, np.array([True]))
    with pytest.raises(ShapeError, match="axis 1"):
        evaluate(ARG_MIN, np.zeros(3), axis=1)
