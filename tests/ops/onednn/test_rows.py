"""oneDNN's elementwise functions, layer normalisation and reductions of rows against those in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise.smooth import GELU, SOFTPLUS
from ops.norm.norm import LAYER_NORM
from ops.onednn.library import objection
from ops.reduce.reduce import REDUCE_MAX, REDUCE_MIN
from ops.schema.backends import NUMBA
from ops.schema.schema import OpSchema
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.kernel_checks import bind, run_without_allocation, sign
from tests.helpers.ops.onednn_checks import check, check_overwrites, library_kernel, numbers

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
PLACES = st.integers(0, 15)
THREADS = st.integers(1, 3)


def _wide(x: Array) -> Array:
    """Returns small numbers and large ones."""
    large: Array = x * np.exp(8 * numbers(9, *x.shape))
    return large


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([GELU, SOFTPLUS]), st.integers(1500, 5000), PLACES, THREADS)
def test_onednn_elementwise_functions_equal_numpy(schema: OpSchema, size: int, place: int, threads: int) -> None:
    for x in (numbers(1, size), 8 * numbers(2, size), _wide(numbers(3, size))):
        assert check(schema, [x], {}, place, threads, 2e-6) == (size >= 2048)


@pytest.mark.parametrize("schema", [GELU, SOFTPLUS])
@pytest.mark.parametrize("number", [1.0, np.nan, np.inf])
def test_onednn_elementwise_functions_overwrite_their_argument(schema: OpSchema, number: float) -> None:
    x = numbers(4, 3, 1000)
    x[1, 1] = number
    check_overwrites(schema, [x], {})


@pytest.mark.parametrize("schema", [GELU, SOFTPLUS])
@pytest.mark.parametrize(("read", "written"), [(1, 2), (3, 1), (2, 5)])
def test_onednn_leaves_strided_elementwise_functions_to_compiled_code(
    schema: OpSchema, read: int, written: int
) -> None:
    x = numbers(5, 3000 * read)[::read]
    x[7:9] = np.nan, -np.inf
    signature = sign(schema, [x], {})
    outputs = [np.zeros(3000 * written, np.float32)[::written] for _ in range(2)]
    compiled = next(k for k in schema.kernels if k.backend == NUMBA)
    for kernel, y in zip((library_kernel(schema), compiled), outputs, strict=True):
        assert kernel.supports(signature) and kernel.writes(Layout.of(y)) and kernel.accepts(signature, 0, Layout.of(x))
        bind(kernel, signature, [x], [y])()
    assert outputs[0].tobytes() == outputs[1].tobytes()


def test_onednn_leaves_gelu_by_tanh_to_compiled_code() -> None:
    signature = GELU.sign([spec_of(numbers(0, 4096))], {"approximate": "tanh"})
    assert not library_kernel(GELU).supports(signature)


@settings(max_examples=20, deadline=None)
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


@settings(max_examples=20, deadline=None)
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


@pytest.mark.parametrize(("schema", "count"), [(GELU, 1), (SOFTPLUS, 1), (LAYER_NORM, 3), (REDUCE_MAX, 1)])
def test_onednn_row_kernels_allocate_nothing(schema: OpSchema, count: int) -> None:
    arrays = [numbers(1, 1000, 128), numbers(2, 128), numbers(3, 128)][:count]
    signature = sign(schema, arrays, {"axes": (1,)} if schema is REDUCE_MAX else {})
    kernel = library_kernel(schema)
    assert kernel.supports(signature)
    run_without_allocation(kernel, signature, arrays)
