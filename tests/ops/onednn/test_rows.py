"""oneDNN's layer normalisation and reductions of rows against those in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.norm import LAYER_NORM
from ops.onednn.library import objection
from ops.reduce.reduce import REDUCE_MAX, REDUCE_MIN
from ops.schema.schema import OpSchema
from ops.tensor.layout import Layout
from tests.helpers.ops.kernel_checks import run_without_allocation, sign
from tests.helpers.ops.onednn_checks import check, check_overwrites, library_kernel, numbers

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
PLACES = st.integers(0, 15)
THREADS = st.integers(1, 3)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 300), st.integers(10, 200), st.integers(2, 3), PLACES, THREADS)
def test_onednn_layer_norm_equals_numpy(rows: int, width: int, inputs: int, place: int, threads: int) -> None:
    arrays = [numbers(5, rows, width), numbers(6, width), numbers(7, width)][:inputs]
    taken = check(LAYER_NORM, arrays, {}, place, threads, 1e-5)
    assert taken == (16 <= width <= 192 and rows * width >= 2048)
    if taken:
        check_overwrites(LAYER_NORM, arrays, {})


def test_onednn_layer_norm_of_several_axes_and_any_numbers() -> None:
    arrays = [numbers(5, 2, 40, 4, 16), numbers(6, 4, 16), numbers(7, 4, 16)]
    assert check(LAYER_NORM, arrays, {"axis": -2, "epsilon": 1e-3}, rtol=1e-5)
    for number in (np.nan, np.inf):
        arrays[0][0, 0, 0, 0] = number
        check_overwrites(LAYER_NORM, arrays, {"axis": -2})
    assert not library_kernel(LAYER_NORM).supports(sign(LAYER_NORM, arrays, {"axis": -2, "with_stats": True}))


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([REDUCE_MAX, REDUCE_MIN]),
    st.lists(st.integers(1, 40), min_size=2, max_size=3),
    st.booleans(),
    PLACES,
    THREADS,
)
def test_onednn_reductions_equal_numpy(
    schema: OpSchema, shape: list[int], keep: bool, place: int, threads: int
) -> None:
    attrs: dict[str, Any] = {"axes": (-1, -2), "keepdims": keep}
    x = numbers(8, 3, *shape)
    taken = check(schema, [x], attrs, place, threads)
    rows, width = 3 * shape[0] if len(shape) == 3 else 3, shape[-1] * shape[-2]
    assert taken == (width >= 64 and rows * width >= 4096)
    assert not library_kernel(schema).supports(sign(schema, [x], {"axes": (0,)}))


@pytest.mark.parametrize(("schema", "count"), [(LAYER_NORM, 3), (REDUCE_MAX, 1)])
def test_onednn_row_kernels_allocate_nothing(schema: OpSchema, count: int) -> None:
    arrays = [numbers(1, 1000, 128), numbers(2, 128), numbers(3, 128)][:count]
    signature = sign(schema, arrays, {"axes": (1,)} if schema is REDUCE_MAX else {})
    kernel = library_kernel(schema)
    assert kernel.supports(signature)
    run_without_allocation(kernel, signature, arrays)


@pytest.mark.parametrize(("schema", "count"), [(LAYER_NORM, 3), (REDUCE_MAX, 1), (REDUCE_MIN, 1)])
def test_onednn_row_kernels_take_dense_arrays_so_that_bits_do_not_depend_on_places(
    schema: OpSchema, count: int
) -> None:
    arrays = [numbers(1, 1000, 128), numbers(2, 128), numbers(3, 128)][:count]
    signature = sign(schema, arrays, {"axes": (1,)} if count == 1 else {})
    kernel, inside = library_kernel(schema), Layout.of(numbers(4, 1000, 130)[:, 1:-1])
    assert kernel.supports(signature)
    assert not kernel.accepts(signature, 0, inside) and not kernel.writes(inside)
