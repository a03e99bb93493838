"""onnxruntime's operators on quantised tensors, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.contributed import check, check_steps, contributed, factors

FEW = settings(max_examples=5, deadline=None)
TYPES = st.sampled_from((np.uint8, np.int8))


def integers(dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(shape).integers(limits.min, limits.max + 1, shape).astype(dtype)


def parameters(dtype: Any, scale: float, zero: int | None = 3) -> list[Array | None]:
    return [np.asarray(scale, np.float32), None if zero is None else np.asarray(zero, dtype)]


@FEW
@given(st.sampled_from(("QLinearAdd", "QLinearMul")), TYPES, st.sampled_from((0, 5)), st.booleans(), st.booleans())
def test_pairs(op_type: str, dtype: Any, zero: int, is_open: bool, is_constant: bool) -> None:
    arrays = [
        integers(dtype, 2, 3, 4),
        *parameters(dtype, 0.021, zero),
        integers(dtype, 4),
        *parameters(dtype, 0.013, zero),
        *parameters(dtype, 0.05, zero),
    ]
    constants = (1, 2, 4, 5, 6, 7, *((3,) if is_constant else ()))
    check_steps(*contributed(op_type, arrays, constants=constants, dims={0: ("a", "b", 4)} if is_open else {}))


@FEW
@given(st.sampled_from(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")), TYPES, st.booleans())
def test_singles(op_type: str, dtype: Any, has_zero: bool) -> None:
    of_y = {"QLinearLeakyRelu": 0.02}.get(op_type, 1 / 256)
    zero = 7 if has_zero or op_type == "QLinearSoftmax" else None
    kinds: dict[str, dict[str, Any]] = {"QLinearSoftmax": {"axis": -1, "opset": 13}, "QLinearLeakyRelu": {"alpha": 0.2}}
    arrays = [integers(dtype, 2, 5), *parameters(dtype, 0.03, zero), *parameters(dtype, of_y, zero)]
    check_steps(*contributed(op_type, arrays, constants=(1, 2, 3, 4), attrs=kinds.get(op_type)))


@FEW
@given(TYPES, st.sampled_from((0, 1, -1)))
def test_concat(dtype: Any, axis: int) -> None:
    arrays = [
        *parameters(dtype, 0.02),
        integers(dtype, 2, 3),
        *parameters(dtype, 0.02),
        integers(dtype, 2, 3),
        *parameters(dtype, 0.03, 9),
    ]
    check_steps(*contributed("QLinearConcat", arrays, constants=(0, 1, 3, 4, 6, 7), axis=axis))


def test_where() -> None:
    arrays = [
        np.random.default_rng(0).random((2, 3)) < 0.5,
        integers(np.uint8, 2, 3),
        *parameters(np.uint8, 0.02),
        integers(np.uint8, 3),
        *parameters(np.uint8, 0.03, 9),
        *parameters(np.uint8, 0.04, 2),
    ]
    check_steps(*contributed("QLinearWhere", arrays, constants=(2, 3, 5, 6, 7, 8)))


@FEW
@given(TYPES, st.sampled_from((0, 1)), st.booleans())
def test_global_average_pool(dtype: Any, is_last: int, is_open: bool) -> None:
    x = integers(dtype, 2, 4, 4, 3)
    arrays = [x, *parameters(dtype, 0.02), *parameters(dtype, 0.01, 1)]
    dims = {0: ("n", 4, 4, 3)} if is_open else {}
    check_steps(
        *contributed("QLinearGlobalAveragePool", arrays, constants=(1, 2, 3, 4), dims=dims, channels_last=is_last)
    )


@FEW
@given(TYPES, st.sampled_from((0, 1)), st.sampled_from((0, 1)), st.sampled_from((1, 2)))
def test_average_pool(dtype: Any, is_last: int, counts: int, stride: int) -> None:
    arrays = [integers(dtype, 1, 6, 6, 6), *parameters(dtype, 0.02), *parameters(dtype, 0.0173, 1)]
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [stride] * 2, "count_include_pad": counts}
    proto, feeds = contributed("QLinearAveragePool", arrays, constants=(1, 2, 3, 4), attrs=attrs, channels_last=is_last)
    check_steps(proto, feeds)


@FEW
@given(TYPES, st.sampled_from((1, 2)))
def test_nhwc_max_pool(dtype: Any, stride: int) -> None:
    attrs = {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1], "strides": [stride] * 2}
    check_steps(*contributed("NhwcMaxPool", [integers(dtype, 1, 5, 6, 3)], attrs=attrs), most=0)


def test_a_convolution_with_channels_last() -> None:
    arrays = [
        integers(np.uint8, 1, 5, 5, 4),
        *parameters(np.uint8, 0.02),
        factors(np.int8, 6, 4, 3, 3),
        *parameters(np.int8, 0.01, 0),
        *parameters(np.uint8, 0.2, 120),
        np.arange(6, dtype=np.int32) * 100,
    ]
    check_steps(*contributed("QLinearConv", arrays, constants=range(1, 9), channels_last=1, pads=[1, 1, 1, 1]))


@FEW
@given(TYPES, st.sampled_from((0, 1)), st.sampled_from((0, 1)), st.booleans(), st.sampled_from((None, 0.1)))
def test_gemm(dtype: Any, trans_a: int, trans_b: int, by_column: bool, of_y: float | None) -> None:
    m, k, n = 3, 5, 4
    scale = np.linspace(0.01, 0.03, n).astype(np.float32) if by_column else np.asarray(0.02, np.float32)
    arrays = [
        integers(dtype, *((k, m) if trans_a else (m, k))),
        *parameters(dtype, 0.03),
        factors(np.int8, *((n, k) if trans_b else (k, n))),
        scale,
        np.zeros(scale.shape, np.int8),
        np.arange(n, dtype=np.int32) * 50,
        *([np.asarray(of_y, np.float32), np.asarray(4, dtype)] if of_y else []),
    ]
    constants = range(1, len(arrays))
    proto, feeds = contributed("QGemm", arrays, constants=constants, alpha=1.5, transA=trans_a, transB=trans_b)
    (check_steps if of_y else check)(proto, feeds)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantisation(dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3)).astype(np.float32)
    check_steps(*contributed("QuantizeLinear", [x, *parameters(dtype, 0.01)], constants=(1, 2)))
    check(*contributed("DequantizeLinear", [integers(dtype, 2, 3), *parameters(dtype, 0.01)], constants=(1, 2)))


def test_sums_and_pools_are_computed_on_quantised_values() -> None:
    ours = [*parameters(np.uint8, 0.02), *parameters(np.uint8, 0.03)]
    proto, _ = contributed("QLinearGlobalAveragePool", [integers(np.uint8, 1, 3, 4, 4), *ours], constants=(1, 2, 3, 4))
    assert "quantised_mean" in schema_names(engine.optimise(engine.load_onnx(proto)))
    one = [integers(np.uint8, 2, 3), *parameters(np.uint8, 0.02)]
    proto, _ = contributed("QLinearAdd", [*one, *one, *parameters(np.uint8, 0.03)], constants=(1, 2, 4, 5, 6, 7))
    assert schema_names(engine.optimise(engine.load_onnx(proto))) == ["quantised_add"]


def test_what_a_quantised_operator_cannot_do_is_told() -> None:
    one = [integers(np.uint8, 2, 3), *parameters(np.uint8, 0.02)]
    proto, _ = contributed("QLinearConcat", [*parameters(np.uint8, 0.1), one[0], one[1]], axis=0)
    with pytest.raises(ModelError, match="4 inputs are not a scale, a zero point, and three for each tensor"):
        engine.load_onnx(proto)
    proto, _ = contributed("QLinearSoftmax", [*one, *parameters(np.uint8, 0.1)], axis=0, opset=11)
    with pytest.raises(UnsupportedError, match="softmax over several axes, as before opset 13"):
        engine.load_onnx(proto)
