"""Specs of tensors: shapes, element types, sizes, axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import (
    DTYPES,
    TensorSpec,
    as_data,
    as_dtype,
    as_shape,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
    spec_of,
)

FLOAT = np.dtype("float32")
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(SHAPES, st.sampled_from(sorted(DTYPES, key=str)))
def test_a_spec_counts_as_numpy_does(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    array = np.zeros(shape, dtype)
    spec = spec_of(array)
    assert (spec.ndim, spec.size, spec.nbytes) == (array.ndim, array.size, array.nbytes)
    assert spec == TensorSpec(shape, dtype)


def test_a_spec_reads_like_a_type() -> None:
    assert str(TensorSpec((2, 3), FLOAT)) == "float32[2,3]"
    assert str(TensorSpec((), FLOAT)) == "float32[]"


def test_a_spec_changes_one_thing_at_a_time() -> None:
    spec = TensorSpec((2, 3), FLOAT)
    assert spec.with_shape([6]) == TensorSpec((6,), FLOAT)
    assert spec.with_dtype("int8") == TensorSpec((2, 3), np.dtype("int8"))


def test_more_dimensions_than_numpy_broadcasts_are_refused() -> None:
    assert TensorSpec((1,) * 32, FLOAT).ndim == 32
    with pytest.raises(ShapeError, match="33 dimensions; the most are 32"):
        TensorSpec((1,) * 33, FLOAT)
    with pytest.raises(ShapeError, match="do not broadcast"):
        broadcast_shapes((2,), (1,) * 33)


def test_lengths_beside_a_length_of_0_are_counted() -> None:
    assert TensorSpec((0, 2**60), FLOAT).nbytes == 0
    with pytest.raises(ShapeError, match="more than 64 bits"):
        TensorSpec((0, 2**62), FLOAT)


def test_masked_arrays_are_no_data() -> None:
    assert as_data([1, 2]).tolist() == [1, 2]
    with pytest.raises(DtypeError, match="mask would be lost"):
        as_data(np.ma.array([1.0, 2.0], mask=[True, False]))


def test_more_bytes_than_64_bits_can_say_are_refused() -> None:
    assert TensorSpec((2**31, 2**29), FLOAT).nbytes == 2**62
    with pytest.raises(ShapeError, match="more than 64 bits"):
        TensorSpec((2**31, 2**30), FLOAT)


@pytest.mark.parametrize("dtype", ["complex64", "U3", "object", "no such type", ">f4"])
def test_spec_refuses_other_element_types(dtype: str) -> None:
    with pytest.raises(DtypeError):
        as_dtype(dtype)


def test_shapes_are_plain_non_negative_integers() -> None:
    shape = as_shape(np.array([2, 3]).tolist())
    assert shape == (2, 3)
    assert [type(n) for n in as_shape(tuple(np.arange(4, 5)))] == [int]
    with pytest.raises(ShapeError, match="negative"):
        as_shape((2, -1))
    with pytest.raises(ShapeError, match="no integer"):
        as_shape((2, 1.5))  # type: ignore[arg-type]


@given(SHAPES, SHAPES)
def test_shapes_broadcast_exactly_where_arrays_do(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        wanted = (np.zeros(a) + np.zeros(b)).shape
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast_shapes(a, b)
    else:
        assert broadcast_shapes(a, b) == wanted


def test_axes_count_from_either_end() -> None:
    assert normalize_axis(-1, 3) == 2
    assert normalize_axes((-1, 0), 3) == (2, 0)


@pytest.mark.parametrize(("axis", "ndim"), [(3, 3), (-4, 3), (0, 0)])
def test_spec_refuses_axes_that_do_not_exist(axis: int, ndim: int) -> None:
    with pytest.raises(ShapeError, match=f"axis {axis} does not exist"):
        normalize_axis(axis, ndim)


def test_an_axis_named_twice_is_refused() -> None:
    with pytest.raises(ShapeError, match="twice"):
        normalize_axes((0, -2), 2)
