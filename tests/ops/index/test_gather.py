"""Elements picked by index, against plain loops over numpy's indexing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.common.indices import IndexRangeError
from ops.index.gather import GATHER, GATHER_ELEMENTS, GATHER_ND
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError, OpError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import SEEDS, numbered

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
INTS = st.sampled_from(["int32", "int64"])
DTYPES = st.sampled_from(["bool", "int8", "float16", "float32", "int64"])


@given(SHAPES, SHAPES, DTYPES, INTS, st.data())
def test_gather_picks_slices(
    shape: tuple[int, ...], places: tuple[int, ...], dtype: str, ints: str, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, n = numbered(shape, dtype), shape[axis]
    indices = np.random.default_rng(data.draw(SEEDS)).integers(-n, n, places).astype(ints)
    wanted = x[(slice(None),) * (axis % len(shape)) + (indices,)]
    check_kernels(GATHER, [x, indices], [wanted], axis=axis)


def test_gather_with_one_index_takes_an_axis_away() -> None:
    check_results(GATHER, [numbered((2, 3)), np.array(-1)], [np.array([2, 5], np.float32)], axis=1)
    check_results(GATHER, [numbered((3,)), np.array(1)], [np.array(1, np.float32)])


@given(SHAPES, DTYPES, INTS, st.data())
def test_gather_elements_replaces_one_coordinate(
    shape: tuple[int, ...], dtype: str, ints: str, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, n = numbered(shape, dtype), shape[axis]
    places = [data.draw(st.integers(0, m)) for m in shape]
    places[axis] = data.draw(st.integers(0, 5))
    indices = np.random.default_rng(data.draw(SEEDS)).integers(-n, n, places).astype(ints)
    wanted = np.empty(places, dtype)
    for at in np.ndindex(*places):
        source = list(at)
        source[axis] = indices[at]
        wanted[at] = x[tuple(source)]
    check_kernels(GATHER_ELEMENTS, [x, indices], [wanted], axis=axis)


@given(SHAPES, SHAPES, DTYPES, INTS, st.data())
def test_gather_nd_follows_tuples(
    shape: tuple[int, ...], lead: tuple[int, ...], dtype: str, ints: str, data: st.DataObject
) -> None:
    random = np.random.default_rng(data.draw(SEEDS))
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(0 if batch else 1, len(shape) - batch))
    x, outer = numbered(shape, dtype), shape[:batch] + lead[:2]
    columns = [random.integers(-n, n, outer) for n in shape[batch : batch + depth]]
    indices = np.stack(columns, -1).astype(ints) if columns else np.zeros((*outer, 0), ints)
    wanted = np.empty(outer + shape[batch + depth :], dtype)
    for at in np.ndindex(*outer):
        wanted[at] = x[at[:batch] + tuple(indices[at].tolist())]
    check_kernels(GATHER_ND, [x, indices], [wanted], batch_dims=batch)


def _gather(x: Array, at: Array) -> tuple[Array, ...]:
    return evaluate(GATHER, x, at)


def _elements(x: Array, at: Array) -> tuple[Array, ...]:
    return evaluate(GATHER_ELEMENTS, x, at.reshape(-1, 1))


def _nd(x: Array, at: Array) -> tuple[Array, ...]:
    return evaluate(GATHER_ND, x, at.reshape(-1, 1))


@pytest.mark.parametrize("gather", [_gather, _elements, _nd])
@pytest.mark.parametrize("wrong", [3, -4, 10**12, -(2**63)])
def test_gather_refuses_an_index_outside_its_axis(gather: Callable[[Array, Array], object], wrong: int) -> None:
    with pytest.raises(IndexRangeError, match=rf"index {wrong} is outside \[-3, 3\)"):
        gather(numbered((3, 2)), np.array([0, wrong, 1]))


@pytest.mark.parametrize("gather", [_gather, _elements, _nd])
def test_gather_picks_nothing_from_an_empty_axis(gather: Callable[[Array, Array], tuple[Array, ...]]) -> None:
    with pytest.raises(IndexRangeError):
        gather(numbered((0, 2)), np.array([0]))
    (nothing,) = gather(numbered((0, 2)), np.zeros(0, np.int64))
    assert nothing.size == 0


@pytest.mark.parametrize("ints", ["int32", "int64"])
@pytest.mark.parametrize(
    ("schema", "data", "places", "attrs"),
    [
        (GATHER, (500, 100), (2000,), {"axis": 0}),
        (GATHER, (100, 500), (2000,), {"axis": 1}),
        (GATHER_ELEMENTS, (500, 100), (300, 100), {"axis": 0}),
        (GATHER_ELEMENTS, (100, 500), (100, 600), {"axis": 1}),
        (GATHER_ND, (200, 200, 5), (8000, 2), {}),
        (GATHER_ND, (200, 200, 5), (200, 300, 1), {"batch_dims": 1}),
    ],
)
def test_gather_allocates_nothing(
    schema: OpSchema, data: tuple[int, ...], places: tuple[int, ...], attrs: dict[str, Any], ints: str
) -> None:
    indices = np.random.default_rng(0).integers(-100, 100, places).astype(ints)
    check_no_allocation(schema, [numbered(data), indices], **attrs)


@pytest.mark.parametrize(
    ("schema", "shapes", "attrs", "message"),
    [
        (GATHER, [(2,), (1,)], {"axis": 1}, "axis 1 does not exist"),
        (GATHER_ELEMENTS, [(2, 3), (3, 3)], {"axis": 1}, "do not fit"),
        (GATHER_ELEMENTS, [(2, 3), (3,)], {"axis": 0}, "do not fit"),
        (GATHER_ND, [(2, 3), (2, 3)], {}, "tuples of 3 indices into 2 dimensions"),
        (GATHER_ND, [(2, 3), (3, 1)], {"batch_dims": 1}, "do not share 1 batch"),
        (GATHER_ND, [(2, 3), ()], {}, "do not share 0 batch"),
    ],
)
def test_gather_refuses_shapes_that_do_not_fit(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        evaluate(schema, np.zeros(shapes[0]), np.zeros(shapes[1], np.int64), **attrs)


@pytest.mark.parametrize("schema", [GATHER, GATHER_ELEMENTS, GATHER_ND])
def test_gather_indices_are_int32_or_int64(schema: OpSchema) -> None:
    with pytest.raises(DtypeError, match="int32 or int64, not float64"):
        evaluate(schema, np.zeros((2, 2)), np.zeros((1, 1)))
    assert issubclass(IndexRangeError, OpError)
