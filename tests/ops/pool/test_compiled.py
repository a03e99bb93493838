"""Compiled pooling of (N, C, spatial...) against the kernels in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.pool.compiled import AVERAGE_ALL, AVERAGE_PLANES, MAX_ALL, MAX_PLANES
from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL, GLOBAL_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, MAX_POOL
from ops.schema.schema import Kernel, OpSchema
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal, perhaps_special
from tests.helpers.ops.window_cases import least_sizes, lengths, window_attrs

Case = tuple[Array, dict[str, Any]]
POOLS: dict[str, tuple[OpSchema, Kernel]] = {"max": (MAX_POOL, MAX_PLANES), "average": (AVERAGE_POOL, AVERAGE_PLANES)}
ALL: dict[str, tuple[OpSchema, Kernel]] = {
    "max": (GLOBAL_MAX_POOL, MAX_ALL),
    "average": (GLOBAL_AVERAGE_POOL, AVERAGE_ALL),
}


@st.composite
def pools(draw: Any) -> Case:
    """Draws one to three dimensions, paddings wider than windows, windows that leave the tensor, empty batches."""
    ndim = draw(st.integers(1, 3))
    kernel, attrs = lengths(draw, ndim, 3), window_attrs(draw, ndim, 3, 3, 3) | {"ceil_mode": draw(st.booleans())}
    most = [7] * (ndim - 1) + [70 if ndim < 3 else 7]
    sizes = [draw(st.integers(n, m)) for n, m in zip(least_sizes(kernel, attrs), most, strict=True)]
    (x,) = normal(draw(st.integers(0, 99)), (draw(st.integers(0, 2)), draw(st.integers(0, 3)), *sizes))
    return perhaps_special(draw, x), {"kernel_shape": kernel, **attrs}


def plain(schema: OpSchema, x: Array, attrs: dict[str, Any]) -> Array:
    """Computes with numpy's kernel."""
    signature = sign(schema, [x], attrs)
    (y,) = run(schema.kernel(signature, ("numpy",)), signature, [x])
    return y


def check_pool(name: str, case: Case, parts: int, apart: bool, **more: bool) -> None:
    """Checks the results of one case, in which images may have gaps between them."""
    schema, native = POOLS[name]
    x, attrs = case
    wide = placed(np.concatenate([x, x], 1))[:, : x.shape[1]] if apart else placed(x)
    signature = sign(schema, [x], attrs | more)
    (got,) = run_native(native, signature, [wide], parts)
    same(got, plain(schema, x, attrs | more), *((1e-5, 1e-6) if name == "average" else ()))


@settings(max_examples=20, deadline=None)
@given(pools(), st.integers(1, 3), st.booleans())
def test_compiled_max_pool_equals_numpy(case: Case, parts: int, apart: bool) -> None:
    check_pool("max", case, parts, apart)


@settings(max_examples=20, deadline=None)
@given(pools(), st.integers(1, 3), st.booleans(), st.booleans())
def test_compiled_average_pool_equals_numpy(case: Case, parts: int, apart: bool, padded: bool) -> None:
    check_pool("average", case, parts, apart, count_include_pad=padded)


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=200, deadline=None)
@given(case=pools(), parts=st.integers(1, 5), apart=st.booleans())
def test_compiled_pool_equals_numpy_in_many_shapes(name: str, case: Case, parts: int, apart: bool) -> None:
    check_pool(name, case, parts, apart)


@st.composite
def planes(draw: Any) -> Array:
    shape = (draw(st.integers(0, 2)), draw(st.integers(0, 5)), draw(st.integers(1, 30)), draw(st.integers(1, 20)))
    return perhaps_special(draw, normal(draw(st.integers(0, 99)), shape)[0])


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=20, deadline=None)
@given(x=planes(), parts=st.integers(1, 3))
def test_compiled_global_pools_equal_numpy(name: str, x: Array, parts: int) -> None:
    schema, native = ALL[name]
    (got,) = run_native(native, sign(schema, [x], {}), [placed(x)], parts)
    same(got, plain(schema, x, {}), *((1e-5, 1e-6) if name == "average" else ()))


@pytest.mark.parametrize("sign_of_nan", [1.0, -1.0])
def test_compiled_max_pool_takes_nan_as_the_largest(sign_of_nan: float) -> None:
    x = np.full((1, 1, 3, 3), np.inf, np.float32)
    x[0, 0, 1, 1] = np.copysign(np.float32(np.nan), np.float32(sign_of_nan))
    (got,) = run_native(MAX_ALL, sign(GLOBAL_MAX_POOL, [x], {}), [x], 1)
    assert np.isnan(got).all()


def test_compiled_average_pool_of_large_numbers_is_accurate() -> None:
    x = np.random.default_rng(0).uniform(1e4, 2e4, (1, 1, 500, 500)).astype(np.float32)
    (got,) = run_native(AVERAGE_ALL, sign(GLOBAL_AVERAGE_POOL, [x], {}), [x], 1)
    np.testing.assert_allclose(got.item(), x.astype(np.float64).mean(), rtol=1e-6)


@pytest.mark.parametrize("name", POOLS)
def test_compiled_pool_allocates_nothing(name: str) -> None:
    schema, native = POOLS[name]
    x = np.ones((1, 64, 40, 40), np.float32)
    signature = sign(schema, [x], {"kernel_shape": (3, 3)})
    run_without_allocation(native, signature, [x])


FAR = 2**32


@pytest.mark.parametrize("schema", [MAX_POOL, AVERAGE_POOL])
@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_shape": (1, 2), "dilations": (1, FAR), "pads": (0, 0, 0, FAR)},
        {"kernel_shape": (1, 2), "dilations": (1, FAR), "pads": (0, FAR, 0, 0)},
        {"kernel_shape": (1, 4), "dilations": (1, FAR // 4), "pads": (0, FAR // 2 - 1, 0, FAR // 2 - 1)},
        {"kernel_shape": (2, 2), "strides": (FAR, FAR)},
        {"kernel_shape": (FAR, FAR), "auto_pad": "SAME_UPPER"},
    ],
)
def test_compiled_pool_refuses_indices_that_overflow(schema: OpSchema, attrs: dict[str, Any]) -> None:
    with pytest.raises(OpError, match=r"(most that it may hold is|at most) 2147483647"):
        schema.sign([TensorSpec((1, 1, 5, 5), np.dtype("float32"))], attrs)


@pytest.mark.parametrize(("schema", "native"), [(MAX_POOL, MAX_PLANES), (AVERAGE_POOL, AVERAGE_PLANES)])
def test_compiled_pool_leaves_columns_beyond_32_bits_to_numpy(schema: OpSchema, native: Kernel) -> None:
    far = FAR // 2 - 8
    attrs: dict[str, Any] = {"kernel_shape": (1, 2), "dilations": (1, far), "strides": (1, far)}
    attrs["pads"] = (0, far, 0, far)
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    signature = sign(schema, [x], attrs)
    assert not native.supports(signature)
    assert native.supports(sign(schema, [x], {"kernel_shape": (1, 2)}))
    assert run(schema.kernel(signature), signature, [x])[0].shape == signature.y.shape
