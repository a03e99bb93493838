"""Compiled pooling of channels-last tensors against the kernels in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.pool.nhwc import AVERAGE_TAPS, MAX_TAPS, NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.nhwc_compiled import AVERAGE_NATIVE, MAX_NATIVE
from ops.schema.schema import Kernel, OpSchema
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal, perhaps_special
from tests.helpers.ops.window_cases import least_sizes, lengths, window_attrs

Case = tuple[Array, dict[str, Any]]
POOLS: dict[str, tuple[OpSchema, Kernel, Kernel]] = {
    "max": (NHWC_MAX_POOL, MAX_NATIVE, MAX_TAPS),
    "average": (NHWC_AVERAGE_POOL, AVERAGE_NATIVE, AVERAGE_TAPS),
}


@st.composite
def pools(draw: Any, most_channels: int = 40) -> Case:
    """Draws one to three dimensions, paddings wider than windows, windows that leave the tensor, empty batches."""
    ndim = draw(st.integers(1, 3))
    kernel, attrs = lengths(draw, ndim, 3), window_attrs(draw, ndim, 3, 3, 3) | {"ceil_mode": draw(st.booleans())}
    sizes = [draw(st.integers(n, 14 if ndim < 3 else 7)) for n in least_sizes(kernel, attrs)]
    channels = draw(st.one_of(st.integers(1, most_channels), st.sampled_from([16, 32])))
    (x,) = normal(draw(st.integers(0, 99)), (draw(st.integers(0, 2)), *sizes, channels))
    return perhaps_special(draw, x), {"kernel_shape": kernel, **attrs}


def check_pool(name: str, case: Case, parts: int, extra: int, **more: bool) -> None:
    """Checks the results of one case."""
    schema, native, plain = POOLS[name]
    signature = sign(schema, [case[0]], case[1] | more)
    (wanted,) = run(plain, signature, [case[0]])
    (got,) = run_native(native, signature, [placed(case[0], extra)], parts, extra)
    same(got, wanted, *((1e-5, 1e-6) if name == "average" else ()))


@settings(max_examples=20, deadline=None)
@given(pools(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_compiled_nhwc_max_pool_equals_numpy(case: Case, parts: int, extra: int) -> None:
    check_pool("max", case, parts, extra)


@settings(max_examples=20, deadline=None)
@given(pools(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]), st.booleans())
def test_compiled_nhwc_average_pool_equals_numpy(case: Case, parts: int, extra: int, padded: bool) -> None:
    check_pool("average", case, parts, extra, count_include_pad=padded)


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=160, deadline=None)
@given(case=pools(150), parts=st.integers(1, 5), extra=st.integers(0, 20))
def test_compiled_nhwc_pool_equals_numpy_in_many_shapes(name: str, case: Case, parts: int, extra: int) -> None:
    check_pool(name, case, parts, extra)


@pytest.mark.parametrize("name", POOLS)
def test_the_pool_behind_the_first_layer_of_a_network(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 30, 30, 64)).astype(np.float32)
    check_pool(name, (x, {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}), 2, 0)


@pytest.mark.parametrize("name", POOLS)
def test_compiled_nhwc_pool_allocates_nothing(name: str) -> None:
    schema, native, _ = POOLS[name]
    x = np.ones((1, 40, 40, 64), np.float32)
    signature = sign(schema, [x], {"kernel_shape": (3, 3)})
    run_without_allocation(native, signature, [x])


@pytest.mark.parametrize("name", POOLS)
def test_compiled_nhwc_pool_takes_float32_and_no_float64(name: str) -> None:
    schema, native, plain = POOLS[name]
    for dtype, kernel in (("float32", native), ("float64", plain)):
        assert schema.kernel(sign(schema, [np.ones((1, 4, 4, 3), dtype)], {"kernel_shape": (2, 2)})) is kernel
