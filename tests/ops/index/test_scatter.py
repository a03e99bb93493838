"""Elements written by index, against plain loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.common.indices import IndexRangeError
from ops.index.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites
from tests.helpers.ops.sample_arrays import SEEDS

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from(["int8", "float16", "float32", "int64"])
INTS = st.sampled_from(["int32", "int64"])
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}
REDUCTIONS = st.sampled_from(sorted(COMBINE))


def small(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return random.integers(-2, 3, shape).astype(dtype)


def combined(y: Array, at: tuple[int, ...], new: Array, reduction: str) -> None:
    for rest in np.ndindex(*new.shape):
        y[at + rest] = COMBINE[reduction](y[at + rest].item(), new[rest].item())


@given(SHAPES, DTYPES, INTS, REDUCTIONS, st.data())
def test_scatter_elements_writes_at_one_replaced_coordinate(
    shape: tuple[int, ...], dtype: str, ints: str, reduction: str, data: st.DataObject
) -> None:
    random = np.random.default_rng(data.draw(SEEDS))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    places, n = [data.draw(st.integers(0, m)) for m in shape], shape[axis]
    unique = np.argsort(random.random([n if i == axis % len(shape) else m for i, m in enumerate(places)]), axis)
    indices = unique[tuple(slice(0, m) for m in places)].astype(ints)
    if reduction != "none":
        indices = random.integers(-n, n, places).astype(ints)
    x, updates = small(random, shape, dtype), small(random, tuple(places), dtype)
    wanted = x.copy()
    for at in np.ndindex(*places):
        target = list(at)
        target[axis] = int(indices[at])
        combined(wanted, tuple(target), updates[at][...], reduction)
    check_kernels(SCATTER_ELEMENTS, [x, indices, updates], [wanted], axis=axis, reduction=reduction)


@given(SHAPES, DTYPES, INTS, REDUCTIONS, st.data())
def test_scatter_nd_writes_slices(
    shape: tuple[int, ...], dtype: str, ints: str, reduction: str, data: st.DataObject
) -> None:
    random = np.random.default_rng(data.draw(SEEDS))
    depth = data.draw(st.integers(1, len(shape)))
    rows = int(np.prod(shape[:depth]))
    count = data.draw(st.integers(0, rows))
    picked = random.permutation(rows)[:count] if reduction == "none" else random.integers(0, rows, count)
    indices = np.stack(np.unravel_index(picked, shape[:depth]), -1).astype(ints)
    indices -= np.array(shape[:depth], ints) * random.integers(0, 2, indices.shape).astype(ints)
    x, updates = small(random, shape, dtype), small(random, (count, *shape[depth:]), dtype)
    wanted = x.copy()
    for i, at in enumerate(indices.tolist()):
        combined(wanted, tuple(at), updates[i][...], reduction)
    check_kernels(SCATTER_ND, [x, indices, updates], [wanted], reduction=reduction)


def test_scatter_may_overwrite_its_data() -> None:
    x, at = np.zeros((4, 3), np.float32), np.zeros((2, 3), np.int64)
    assert check_overwrites(SCATTER_ELEMENTS, [x, at, np.ones((2, 3), np.float32)]) == 1
    assert check_overwrites(SCATTER_ELEMENTS, [x, np.zeros((4, 3), np.int64), x + 1]) == 1
    assert check_overwrites(SCATTER_ND, [x, np.array([[1]]), np.ones((1, 3), np.float32)]) == 1


@pytest.mark.parametrize("reduction", sorted(COMBINE))
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_scatter_allocates_nothing(reduction: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    x, at = small(random, (300, 300), dtype), random.integers(-200, 200, (100, 300))
    check_no_allocation(SCATTER_ELEMENTS, [x, at, small(random, (100, 300), dtype)], axis=1, reduction=reduction)
    pairs = random.integers(-200, 200, (9000, 2)).astype("int32")
    check_no_allocation(SCATTER_ND, [x, pairs, small(random, (9000,), dtype)], reduction=reduction)
    check_no_allocation(SCATTER_ND, [x, pairs[:, :1], small(random, (9000, 300), dtype)], reduction=reduction)


def test_scatter_refuses_an_index_outside_its_axis_before_anything_is_written() -> None:
    x, ones = np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32)
    with pytest.raises(IndexRangeError, match=r"index 3 is outside \[-3, 3\)"):
        evaluate(SCATTER_ELEMENTS, x, np.array([[0, 3]]), ones)
    with pytest.raises(IndexRangeError, match=r"index -4 is outside \[-3, 3\)"):
        evaluate(SCATTER_ND, x, np.array([[-4]]), ones)


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (SCATTER_ELEMENTS, [np.zeros((2, 3)), np.zeros((3, 3), int), np.zeros((3, 3))], {"axis": 1}, "do not fit"),
        (SCATTER_ELEMENTS, [np.zeros((2, 3)), np.zeros((1, 3), int), np.zeros((1, 2))], {}, "updates of shape"),
        (SCATTER_ND, [np.zeros((2, 3)), np.zeros((1, 3), int), np.zeros((1,))], {}, "no tuples"),
        (SCATTER_ND, [np.zeros((2, 3)), np.zeros((1, 1), int), np.zeros((1, 2))], {}, r"\(1, 3\) is wanted"),
        (SCATTER_ND, [np.zeros((2,)), np.zeros((1, 1), int), np.zeros((1,), int)], {}, "do not fit into float64"),
        (SCATTER_ND, [np.zeros((2,)), np.zeros((1, 1)), np.zeros((1,))], {}, "indices must be"),
        (
            SCATTER_ND,
            [np.zeros(2, bool), np.zeros((1, 1), int), np.zeros(1, bool)],
            {"reduction": "add"},
            "takes numbers",
        ),
    ],
)
def test_scatter_refuses_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
