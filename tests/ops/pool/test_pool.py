"""Pooling against onnxruntime, and what its kernels must keep."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL, GLOBAL_LP_POOL, GLOBAL_MAX_POOL
from ops.pool.nhwc import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, LP_POOL, MAX_POOL
from ops.schema.schema import OpSchema
from ops.spatial.depth_to_space import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from ops.tensor.errors import AttributeValueError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_no_allocation, check_results, check_strides, kernels, run, sign
from tests.helpers.ops.sample_arrays import normal

BUFFERS = 128 << 10
"""numpy takes up to three buffers of 32 KiB for a moment where it broadcasts; no array is that small here."""
POOLS: list[tuple[OpSchema, dict[str, Any]]] = [
    (MAX_POOL, {}),
    (MAX_POOL, {"with_indices": True}),
    (AVERAGE_POOL, {}),
    (AVERAGE_POOL, {"count_include_pad": True}),
    (LP_POOL, {"p": 1}),
    (LP_POOL, {"p": 2}),
    (LP_POOL, {"p": 3}),
]
GLOBAL: list[tuple[OpSchema, dict[str, Any]]] = [
    (GLOBAL_AVERAGE_POOL, {}),
    (GLOBAL_MAX_POOL, {}),
    (GLOBAL_LP_POOL, {"p": 1}),
    (GLOBAL_LP_POOL, {"p": 2}),
    (GLOBAL_LP_POOL, {"p": 3}),
]


@st.composite
def pooled(draw: Any) -> tuple[Array, dict[str, Any]]:
    ndim = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(5, 8), min_size=ndim, max_size=ndim))
    kernel = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    attrs: dict[str, Any] = {"kernel_shape": kernel}
    attrs["strides"] = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto == "NOTSET":
        attrs["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
        attrs["ceil_mode"] = draw(st.integers(0, 1))
    else:
        attrs["auto_pad"] = auto
        # Windows with gaps would need less than no padding: onnxruntime then crops, unlike its own Conv.
        attrs["strides"] = [min(s, k) for s, k in zip(attrs["strides"], kernel, strict=True)]
    return normal(draw(st.integers(0, 99)), (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *sizes))[0], attrs


@settings(max_examples=30)
@given(pooled(), st.integers(0, 1), st.booleans())
def test_max_pool_and_its_indices_are_those_of_onnxruntime(
    case: tuple[Array, dict[str, Any]], storage_order: int, dilated: bool
) -> None:
    x, attrs = case
    if dilated and "auto_pad" not in attrs:
        attrs["dilations"] = [2] * len(attrs["kernel_shape"])
    if x.ndim > 3:
        attrs["storage_order"] = storage_order
    values, places = onnxruntime_node("MaxPool", [x], outputs=2, opset=12, **attrs)
    check_results(MAX_POOL, [x], [values], **attrs)
    check_results(MAX_POOL, [x], [values, places], with_indices=True, **attrs)


@settings(max_examples=30)
@given(pooled(), st.integers(0, 1), st.booleans())
def test_average_pool_equals_onnxruntime(
    case: tuple[Array, dict[str, Any]], count_include_pad: int, dilated: bool
) -> None:
    x, attrs = case
    attrs["count_include_pad"] = count_include_pad
    if dilated and "auto_pad" not in attrs:
        attrs["dilations"] = [2] * len(attrs["kernel_shape"])
    wanted = onnxruntime_node("AveragePool", [x], **attrs)
    check_results(AVERAGE_POOL, [x], wanted, rtol=1e-5, atol=1e-6, **attrs)


@settings(max_examples=20)
@given(pooled(), st.integers(1, 3))
def test_lp_pool_equals_onnxruntime(case: tuple[Array, dict[str, Any]], p: int) -> None:
    x, attrs = case
    wanted = onnxruntime_node("LpPool", [x], opset=18, **attrs, p=p)
    check_results(LP_POOL, [x], wanted, rtol=1e-4, atol=1e-5, **attrs, p=p)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_max_pool_takes_small_integers(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (1, 2, 6, 7)).astype(dtype)
    if dtype == "int8":
        x -= 100
    attrs: dict[str, Any] = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 1, 1, 0)}
    check_results(MAX_POOL, [x], onnxruntime_node("MaxPool", [x], opset=12, **attrs), **attrs)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("schema", "attrs"), POOLS)
def test_pools_read_data_stored_anyhow(schema: OpSchema, attrs: dict[str, Any], dtype: str) -> None:
    (x,) = normal(1, (2, 3, 5, 6), dtype=dtype)
    window: dict[str, Any] = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}
    check_strides(schema, [x], **window, **attrs)


@pytest.mark.parametrize(("schema", "attrs"), POOLS)
def test_pools_allocate_nothing(schema: OpSchema, attrs: dict[str, Any]) -> None:
    (x,) = normal(1, (1, 32, 130, 130))
    check_no_allocation(
        schema, [x], scratch_limit=BUFFERS, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), **attrs
    )


@pytest.mark.parametrize(("schema", "attrs"), GLOBAL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_global_pools_are_means_maxima_and_norms(schema: OpSchema, attrs: dict[str, Any], dtype: str) -> None:
    (x,) = normal(3, (2, 3, 4, 5), dtype=dtype)
    wide, p = x.astype("float64"), attrs.get("p", 1)
    wanted = {
        "global_average_pool": wide.mean(axis=(2, 3), keepdims=True),
        "global_max_pool": wide.max(axis=(2, 3), keepdims=True),
        "global_lp_pool": (np.abs(wide) ** p).sum(axis=(2, 3), keepdims=True) ** (1 / p),
    }[schema.name]
    close = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    check_results(schema, [x], [wanted.astype(dtype)], rtol=close, atol=close, **attrs)
    check_strides(schema, [x], **attrs)


@pytest.mark.parametrize(("schema", "attrs"), GLOBAL)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_global_pools_allocate_nothing(schema: OpSchema, attrs: dict[str, Any], dtype: str) -> None:
    check_no_allocation(schema, normal(4, (1, 256, 64, 66), dtype=dtype), **attrs)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth_is_the_way_back_from_depth_to_space(mode: str) -> None:
    (x,) = normal(5, (2, 12, 3, 4))
    (wide,) = onnxruntime_node("DepthToSpace", [x], blocksize=2, mode=mode)
    check_results(DEPTH_TO_SPACE, [x], [wide], blocksize=2, mode=mode)
    check_results(SPACE_TO_DEPTH, [wide], [x], blocksize=2, mode=mode)
    check_strides(DEPTH_TO_SPACE, [x], blocksize=2, mode=mode)
    check_strides(SPACE_TO_DEPTH, [wide], blocksize=2, mode=mode)


def test_large_average_pools_need_little_workspace() -> None:
    x = TensorSpec((8, 512, 56, 56), np.dtype("float32"))
    for schema in (MAX_POOL, AVERAGE_POOL, LP_POOL):
        signature = schema.sign((x,), {"kernel_shape": (3, 3)})
        assert schema.kernel(signature).workspace(signature) <= 256 << 10


def test_pool_refuses_shapes_that_do_not_fit_with_their_numbers() -> None:
    x = TensorSpec((1, 3, 4, 4), np.dtype("float32"))
    with pytest.raises(ShapeError, match="window of 5 does not fit"):
        MAX_POOL.sign((x,), {"kernel_shape": (5, 5)})
    with pytest.raises(AttributeValueError, match="storage_order is 2"):
        MAX_POOL.sign((x,), {"kernel_shape": (2, 2), "storage_order": 2})
    with pytest.raises(AttributeValueError, match="p is 0"):
        LP_POOL.sign((x,), {"kernel_shape": (2, 2), "p": 0})
    with pytest.raises(AttributeValueError, match="cannot both be given"):
        MAX_POOL.sign((x,), {"kernel_shape": (2, 2), "pads": (1, 1, 1, 1), "auto_pad": "VALID"})
    with pytest.raises(ShapeError, match="3 channels"):
        DEPTH_TO_SPACE.sign((x,), {"blocksize": 2})


@pytest.mark.parametrize("schema", [AVERAGE_POOL, MAX_POOL, LP_POOL, NHWC_AVERAGE_POOL, NHWC_MAX_POOL])
def test_pool_windows_that_all_begin_in_the_padding_leave_an_empty_output(schema: OpSchema) -> None:
    shape = (1, 0, 17, 5) if schema in (NHWC_AVERAGE_POOL, NHWC_MAX_POOL) else (1, 5, 0, 17)
    attrs = {"kernel_shape": (1, 2), "pads": (0, 0, 1, 0), "strides": (2, 1), "ceil_mode": True}
    x = np.ones(shape, np.float32)
    signature = sign(schema, [x], attrs)
    assert not signature.y.size
    for kernel in kernels(schema, signature):
        assert run(kernel, signature, [x])[0].shape == signature.y.shape
