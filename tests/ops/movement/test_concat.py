"""Concat and tile against numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.movement.concat import CONCAT
from ops.movement.tile import TILE
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import numbered

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "float16", "float32", "int64"])


@given(SHAPES, DTYPES, st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_concat_joins_along_an_axis(
    shape: tuple[int, ...], dtype: str, lengths: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    place = axis % len(shape)
    xs = [numbered((*shape[:place], n, *shape[place + 1 :]), dtype) for n in lengths]
    wanted = np.empty((*shape[:place], sum(lengths), *shape[place + 1 :]), dtype)
    for x, end in zip(xs, np.cumsum(lengths), strict=True):
        wanted[(slice(None),) * place + (slice(end - x.shape[place], end),)] = x
    check_kernels(CONCAT, xs, [wanted], axis=axis)


@given(SHAPES, DTYPES, st.data())
def test_tile_repeats_each_axis(shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    repeats = [data.draw(st.integers(0, 3)) for _ in shape]
    x = numbered(shape, dtype)
    check_kernels(TILE, [x], [np.tile(x, repeats)], repeats=repeats)


def test_tile_of_a_scalar_is_itself() -> None:
    check_results(TILE, [np.array(3.0)], [np.array(3.0)], repeats=())


def test_concat_and_tile_allocate_nothing() -> None:
    x = numbered((200, 300))
    check_no_allocation(CONCAT, [x, x[:, ::-1], numbered((300, 200)).T], axis=1)
    check_no_allocation(TILE, [x], repeats=(2, 3))
    check_no_allocation(TILE, [x.T], repeats=(1, 2))


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (CONCAT, [np.zeros((2, 3)), np.zeros((3, 3))], {"axis": 1}, "differ outside axis 1"),
        (CONCAT, [np.zeros((2, 3)), np.zeros((2,))], {"axis": 1}, "differ outside axis 1"),
        (CONCAT, [np.zeros((2,)), np.zeros((2,), int)], {"axis": 0}, "element types differ"),
        (CONCAT, [np.zeros(())], {"axis": 0}, "axis 0 does not exist"),
        (CONCAT, [], {"axis": 0}, "not 0"),
        (TILE, [np.zeros((2, 3))], {"repeats": (2,)}, "1 repeats for a tensor of 2 dimensions"),
        (TILE, [np.zeros((2,))], {"repeats": (-1,)}, "negative"),
    ],
)
def test_concat_and_tile_refuse_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
