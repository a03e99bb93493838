import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ops.common.blocks import BLOCK_BYTES
from ops.reduce.arg import ARG_MAX, ARG_MIN
from ops.schema.backends import NUMPY
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import (
    check_no_allocation,
    check_results,
    check_strides,
    run,
    same,
    sign,
    strided_copies,
)

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def position(row: list[int], schema: OpSchema, last: bool) -> int:
    """Returns the position that the operator should return for one row."""
    best = max(row) if schema is ARG_MAX else min(row)
    return len(row) - 1 - row[::-1].index(best) if last else row.index(best)


def reference(x: Array, axis: int, schema: OpSchema, last: bool) -> Array:
    """Computes row by row, in plain Python."""
    rows = np.moveaxis(x, axis, -1)
    positions = [position(rows[index].tolist(), schema, last) for index in np.ndindex(*rows.shape[:-1])]
    return np.array(positions, np.int64).reshape(rows.shape[:-1])


@given(
    x=hnp.arrays(np.int64, SHAPES, elements=st.integers(-2, 2)),
    dtype=st.sampled_from(["int8", "int64", "float16", "float32", "float64"]),
    schema=st.sampled_from([ARG_MAX, ARG_MIN]),
    last=st.booleans(),
    data=st.data(),
)
def test_argmax_finds_the_first_or_last_extreme_of_each_row(
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
def test_argmax_of_many_blocks_equals_one_search(axis: int, last: bool) -> None:
    x = np.random.default_rng(0).integers(0, 9, (30, 41, 50)).astype(np.float32)
    wanted = reference(x, axis, ARG_MAX, last)
    check_results(ARG_MAX, [x], [wanted], axis=axis, keepdims=False, select_last_index=last)


def test_a_row_longer_than_a_block_is_searched_at_once() -> None:
    x = np.zeros((2, 40000), np.float32)
    x[0, 39999] = x[1, 7] = x[1, 9] = 1
    wanted = [np.array([39999, n]) for n in (9, 7)]
    check_results(ARG_MAX, [x], [wanted[0]], axis=1, keepdims=False, select_last_index=True)
    check_results(ARG_MAX, [x.T], [wanted[1]], axis=0, keepdims=False)


def test_the_workspace_of_argmax_is_a_block() -> None:
    for axis, most in ((0, BLOCK_BYTES), (1, 0)):
        signature = ARG_MAX.sign([TensorSpec((1000, 1000), np.dtype("float32"))], {"axis": axis})
        assert ARG_MAX.kernel(signature, (NUMPY,)).workspace(signature) <= most


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_argmax_kernels_allocate_nothing(axis: int, last: bool) -> None:
    x = np.random.default_rng(0).standard_normal((30, 40, 50)).astype(np.float32)
    for schema in (ARG_MAX, ARG_MIN):
        check_no_allocation(schema, [x], axis=axis, select_last_index=last)
        check_no_allocation(schema, [x[:, ::-1]], axis=axis, select_last_index=last)


def test_an_empty_axis_has_no_extreme_but_an_empty_tensor_may_have_none_to_find() -> None:
    with pytest.raises(ShapeError, match="empty"):
        evaluate(ARG_MAX, np.zeros((2, 0)), axis=1)
    same(evaluate(ARG_MAX, np.zeros((0, 2)), axis=1)[0], np.zeros((0, 1), np.int64))
    same(evaluate(ARG_MAX, np.zeros((2, 0)), axis=0)[0], np.zeros((1, 0), np.int64))


def test_argmax_refuses_bools_and_missing_axes() -> None:
    with pytest.raises(DtypeError):
        evaluate(ARG_MAX, np.array([True]))
    with pytest.raises(ShapeError, match="axis 1"):
        evaluate(ARG_MIN, np.zeros(3), axis=1)


@settings(max_examples=60, deadline=None)
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=40),
    schema=st.sampled_from([ARG_MAX, ARG_MIN]),
    last=st.booleans(),
    special=st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0]), max_size=6),
    parts=st.integers(1, 3),
    data=st.data(),
)
def test_compiled_argmax_equals_numpy(  # noqa: PLR0917 - drawn
    shape: tuple[int, ...], schema: OpSchema, last: bool, special: list[float], parts: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(-3, 4, shape).astype(np.float32)
    x.reshape(-1)[rng.integers(0, x.size, len(special))] = special
    attrs = {"axis": data.draw(st.integers(-x.ndim, x.ndim - 1)), "select_last_index": last}
    signature = sign(schema, [x], attrs)
    native, plain = schema.kernels[0], schema.kernels[-1]
    (wanted,) = run(plain, signature, [x])
    for stored in (placed(x), *strided_copies(x)):
        same(run_native(native, signature, [stored], parts)[0], wanted)
