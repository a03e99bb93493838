"""Normalization against plain formulas in float64, and what its kernels must keep."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.batch_norm import BATCH_NORM
from ops.norm.lrn import LRN
from ops.norm.norm import GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM
from ops.schema.schema import OpSchema, Signature
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import (
    check_no_allocation,
    check_overwrites,
    check_results,
    check_strides,
    run,
    sign,
)

BUFFERS = 128 << 10
"""numpy takes up to three buffers of 32 KiB for a moment where it broadcasts; no array is that small here."""
CLOSE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-11}
DTYPES = ["float16", "float32", "float64"]


def _standard(x: Array, axes: tuple[int, ...]) -> Array:
    mean = x.mean(axis=axes, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5))


def _column(values: Array, ndim: int) -> Array:
    return values.reshape((-1,) + (1,) * (ndim - 2))


def _layer(x: Array, scale: Array, bias: Array) -> Array:
    return _standard(x, (2, 3)) * scale + bias


def _rms(x: Array, scale: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(axis=(2, 3), keepdims=True) + 1e-5) * scale)


def _instance(x: Array, scale: Array, bias: Array) -> Array:
    return _standard(x, (2, 3)) * _column(scale, x.ndim) + _column(bias, x.ndim)


def _group(x: Array, scale: Array, bias: Array) -> Array:
    whole = _standard(x.reshape((len(x), 2, -1)), (2,)).reshape(x.shape)
    return np.asarray(whole * _column(scale, x.ndim) + _column(bias, x.ndim))


def _batch(x: Array, scale: Array, bias: Array, mean: Array, var: Array) -> Array:
    s, b, m, v = (_column(p, x.ndim) for p in (scale, bias, mean, var))
    return np.asarray((x - m) / np.sqrt(v + 1e-5) * s + b)


def _lrn(x: Array) -> Array:
    sums = np.stack([(x[:, max(0, c - 1) : c + 3] ** 2).sum(axis=1) for c in range(x.shape[1])], axis=1)
    return np.asarray(x / (2 + 0.3 / 4 * sums) ** 0.6)


Case = tuple[OpSchema, list[tuple[int, ...]], dict[str, Any], Callable[..., Array]]
CASES: list[Case] = [
    (LAYER_NORM, [(4, 5), (5,)], {"axis": 2}, _layer),
    (RMS_NORM, [(4, 5)], {"axis": -2}, _rms),
    (INSTANCE_NORM, [(6,), (6,)], {}, _instance),
    (GROUP_NORM, [(6,), (6,)], {"num_groups": 2}, _group),
    (BATCH_NORM, [(6,), (6,), (6,), (6,)], {}, _batch),
    (LRN, [], {"size": 4, "alpha": 0.3, "beta": 0.6, "bias": 2.0}, _lrn),
]


def _data(seed: int, dtype: str, *shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2, s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("schema", "shapes", "attrs", "formula"), CASES)
def test_norms_follow_their_formulas(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any], formula: Callable[..., Array], dtype: str
) -> None:
    arrays = _data(1, dtype, (2, 6, 4, 5), *shapes)
    arrays[0][...] -= 1
    wanted = formula(*(a.astype("float64") for a in arrays)).astype(dtype)
    check_results(schema, arrays, [wanted], rtol=CLOSE[dtype], atol=CLOSE[dtype], **attrs)
    check_strides(schema, arrays, **attrs)
    assert check_overwrites(schema, arrays, **attrs) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("schema", "shapes", "attrs", "formula"), CASES)
def test_norms_of_large_data_go_piece_by_piece_and_allocate_nothing(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any], formula: Callable[..., Array], dtype: str
) -> None:
    pixels = (420, 430)
    grown = [pixels if s == (4, 5) else (430,) if s == (5,) else s for s in shapes]
    arrays = _data(2, dtype, (1, 6, *pixels), *grown)
    wanted = formula(*(a.astype("float64") for a in arrays)).astype(dtype)
    check_results(schema, arrays, [wanted], rtol=2 * CLOSE[dtype], atol=2 * CLOSE[dtype], **attrs)
    check_no_allocation(schema, arrays, scratch_limit=BUFFERS, **attrs)
    assert check_overwrites(schema, arrays, **attrs) == 1


@settings(max_examples=20)
@given(st.integers(1, 9), st.integers(1, 7), st.integers(0, 50))
def test_lrn_of_any_size_is_that_of_onnxruntime(channels: int, half: int, seed: int) -> None:
    (x,) = _data(seed, "float32", (2, channels, 3, 4))
    attrs: dict[str, Any] = {"size": 2 * half - 1, "alpha": 0.2, "beta": 0.7, "bias": 1.5}
    check_results(LRN, [x], onnxruntime_node("LRN", [x], **attrs), rtol=1e-5, **attrs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_returns_its_statistics(dtype: str) -> None:
    arrays = _data(3, dtype, (3, 4, 5), (5,))
    x, scale = (a.astype("float64") for a in arrays)
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    factor = 1 / np.sqrt(var + 1e-5)
    wanted = [((x - mean) * factor * scale).astype(dtype), mean.astype("float32"), factor.astype("float32")]
    close = max(CLOSE[dtype], 1e-6)
    check_results(LAYER_NORM, arrays, wanted, rtol=close, atol=close, with_stats=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_statistics_of_batch_norm_give_the_same_bits(dtype: str) -> None:
    arrays = _data(4, dtype, (2, 3, 4), (3,), (3,), (3,), (3,))
    signature = sign(BATCH_NORM, arrays, {})
    fixed = Signature(signature.inputs, signature.outputs, signature.attrs, frozenset({1, 2, 3, 4}))
    kernel = BATCH_NORM.kernel(signature)
    np.testing.assert_array_equal(run(kernel, fixed, arrays)[0], run(kernel, signature, arrays)[0])
    assert kernel.workspace(fixed) < kernel.workspace(signature)


def test_batch_norm_takes_parameters_of_another_float_type_and_data_without_pixels() -> None:
    arrays = [*_data(5, "float16", (4, 3)), *_data(6, "float32", (3,), (3,), (3,), (3,))]
    wanted = _batch(*(a.astype("float64") for a in arrays)).astype("float16")
    check_results(BATCH_NORM, arrays, [wanted], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("schema", "shapes", "attrs", "formula"), CASES)
def test_norms_of_empty_batches(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any], formula: Callable[..., Array]
) -> None:
    arrays = _data(7, "float32", (0, 6, 4, 5), *shapes)
    check_results(schema, arrays, [formula(*arrays)] if schema is BATCH_NORM else [arrays[0]], **attrs)


def test_norms_refuse_shapes_that_do_not_fit_with_their_numbers() -> None:
    x, c = TensorSpec((2, 6, 4, 5), np.dtype("float32")), TensorSpec((6,), np.dtype("float32"))
    with pytest.raises(AttributeValueError, match="num_groups is 4"):
        GROUP_NORM.sign((x, c, c), {"num_groups": 4})
    with pytest.raises(ShapeError, match="one number for each channel"):
        INSTANCE_NORM.sign((x, c, c.with_shape((5,))), {})
    with pytest.raises(ShapeError, match=r"var has shape \(5,\)"):
        BATCH_NORM.sign((x, c, c, c, c.with_shape((5,))), {})
    with pytest.raises(ShapeError, match="does not broadcast"):
        LAYER_NORM.sign((x, c), {})
    with pytest.raises(DtypeError, match="int32"):
        RMS_NORM.sign((x.with_dtype("int32"), c.with_shape((5,)).with_dtype("int32")), {})
    with pytest.raises(AttributeValueError, match="size is 0"):
        LRN.sign((x,), {"size": 0})
