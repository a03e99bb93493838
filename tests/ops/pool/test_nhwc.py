"""Channels-last pooling and local response normalization against the channels-first operators."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.lrn import LRN
from ops.norm.nhwc_lrn import NHWC_LRN
from ops.pool.nhwc import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, MAX_POOL
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.kernel_checks import (
    check_overwrites,
    check_strides,
    garbage,
    kernels,
    run,
    run_without_allocation,
    same,
    sign,
)
from tests.helpers.ops.window_cases import extents, lengths, window_attrs

PAIRS = {NHWC_MAX_POOL: MAX_POOL, NHWC_AVERAGE_POOL: AVERAGE_POOL, NHWC_LRN: LRN}


def reference(schema: OpSchema, x: Array, attrs: dict[str, Any]) -> Array:
    """Computes with the channels-first operator."""
    (y,) = evaluate(PAIRS[schema], np.ascontiguousarray(np.moveaxis(x, -1, 1)), **attrs)
    return np.moveaxis(y, 1, -1)


def data(seed: int, *shape: int, dtype: str = "float32", spoilt: bool = False) -> Array:
    """Returns normal numbers, some of them NaN or infinite where `spoilt`."""
    x = np.random.default_rng(seed).standard_normal(shape) * 4
    if spoilt:
        flat = x.reshape(-1)
        flat[::17], flat[5::23], flat[7::29] = np.nan, np.inf, -np.inf
    return x.astype(dtype)


@st.composite
def pools(draw: Any) -> tuple[OpSchema, Array, dict[str, Any]]:
    """Draws windows in one to three dimensions."""
    schema, ndim = draw(st.sampled_from([NHWC_MAX_POOL, NHWC_AVERAGE_POOL])), draw(st.integers(1, 3))
    kernel, attrs = lengths(draw, ndim, 3), window_attrs(draw, ndim, 3, 2, 2)
    sizes = [draw(st.integers(n, n + (9 if ndim < 3 else 2))) for n in extents(kernel, attrs["dilations"])]
    attrs |= {"kernel_shape": kernel, "ceil_mode": draw(st.booleans())}
    dtypes = ["float32", "float64"]
    if schema is NHWC_AVERAGE_POOL:
        attrs["count_include_pad"] = draw(st.booleans())
    else:
        dtypes += ["float16", "int8", "uint8"]
    dtype = draw(st.sampled_from(dtypes))
    shape = (draw(st.integers(0, 2)), *sizes, draw(st.integers(0, 5)))
    return schema, data(draw(st.integers(0, 99)), *shape, dtype=dtype, spoilt=dtype.startswith("f")), attrs


@settings(max_examples=40)
@given(pools())
def test_nhwc_pool_kernels_equal_channels_first(case: tuple[OpSchema, Array, dict[str, Any]]) -> None:
    schema, x, attrs = case
    with np.errstate(all="ignore"):
        wanted = reference(schema, x, attrs)
    signature = sign(schema, [x], attrs)
    for kernel in kernels(schema, signature):
        same(run(kernel, signature, [x])[0], wanted, rtol=1e-5, atol=1e-5)
    check_strides(schema, [x], rtol=1e-5, atol=1e-5, **attrs)


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 7), st.integers(0, 3), st.integers(0, 99))
def test_nhwc_lrn_equals_channels_first(channels: int, size: int, batch: int, seed: int) -> None:
    x, attrs = data(seed, batch, 3, 2, channels), {"size": size, "alpha": 0.1, "beta": 0.7, "bias": 1.5}
    wanted = reference(NHWC_LRN, x, attrs)
    signature = sign(NHWC_LRN, [x], attrs)
    for kernel in kernels(NHWC_LRN, signature):
        same(run(kernel, signature, [x])[0], wanted, rtol=1e-5, atol=1e-6)
    check_strides(NHWC_LRN, [x], rtol=1e-5, atol=1e-6, **attrs)
    assert check_overwrites(NHWC_LRN, [x], **attrs) == 1


@pytest.mark.parametrize(
    ("schema", "attrs"),
    [
        (NHWC_MAX_POOL, {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
        (NHWC_AVERAGE_POOL, {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
        (NHWC_LRN, {"size": 5}),
    ],
)
def test_nhwc_pool_of_network_layers_allocates_nothing_inside_a_wider_tensor(
    schema: OpSchema, attrs: dict[str, Any]
) -> None:
    x = data(1, 1, 57, 57, 80)[..., 8:72]
    signature, wanted = sign(schema, [x], attrs), reference(schema, x, attrs)
    able = [k for k in kernels(schema, signature) if k.accepts(signature, 0, Layout.of(x)) and k.writes(Layout.of(x))]
    assert able
    for kernel in able:
        wide = garbage(TensorSpec((*signature.y.shape[:-1], 96), x.dtype))
        before, y = wide[..., :16].copy(), wide[..., 16:80]
        run_without_allocation(kernel, signature, [x], y)
        same(y, wanted, rtol=1e-5, atol=1e-6)
        assert wide[..., :16].tobytes() == before.tobytes()


def test_nhwc_pool_and_lrn_refuse_other_types() -> None:
    with pytest.raises(DtypeError, match="float16"):
        NHWC_AVERAGE_POOL.sign([TensorSpec((1, 4, 4, 2), np.dtype("float16"))], {"kernel_shape": (2, 2)})
    with pytest.raises(DtypeError, match="int32"):
        NHWC_MAX_POOL.sign([TensorSpec((1, 4, 4, 2), np.dtype("int32"))], {"kernel_shape": (2, 2)})
