"""Quantising and dequantising, against the formulas of ONNX written element by element, and against onnxruntime."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise.cast import CAST
from ops.quantised.dynamic import DYNAMIC_QUANTIZE_LINEAR
from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.limits import info
from ops.tensor.spec import NARROW_FLOATS, POWERS, Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import SEEDS, full_range

QUANTISED_TYPES = ["uint8", "int8", "uint16", "int16"]
STORED_TYPES = [*QUANTISED_TYPES, "int2", "uint2", "int4", "uint4"]


def spread(parameter: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """Returns the parameter of each element."""
    if block:
        return np.repeat(parameter, block, axis)[tuple(slice(0, n) for n in shape)]
    if parameter.ndim == 0:
        return np.broadcast_to(parameter, shape)
    places = np.indices(shape)[axis]
    return np.asarray(parameter[places])


def quantised(x: Array, scale: Array, zero: Array) -> Array:
    """Computes the formula, one number after the other; Python rounds halves to even."""
    ends, result = info(zero.dtype), np.empty(x.shape, zero.dtype)
    for i in np.ndindex(x.shape):
        code = round(float(np.divide(x[i].astype(scale.dtype), scale[i]))) + int(zero[i])
        result[i] = min(max(code, int(ends.min)), int(ends.max))
    return result


def dequantised(x: Array, scale: Array, zero: Array) -> Array:
    exact = x.astype(np.int64) - zero.astype(np.int64)
    return (exact.astype(np.float32) * scale.astype(np.float32)).astype(scale.dtype)


@st.composite
def grains(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]:
    """Draws the shape of a tensor, that of its scale, and the attributes that go with them."""
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    kind = draw(st.sampled_from(["tensor", "axis", "blocks"]))
    if kind == "tensor":
        return shape, (), {"axis": axis, "block_size": 0}
    if kind == "axis":
        return shape, (shape[axis],), {"axis": axis, "block_size": 0}
    block = draw(st.integers(1, 6))
    blocked = list(shape)
    blocked[axis] = math.ceil(shape[axis] / block)
    return shape, tuple(blocked), {"axis": axis, "block_size": block}


@settings(max_examples=50)
@given(
    grains(),
    st.tuples(
        st.sampled_from(STORED_TYPES),
        st.sampled_from(["float32", "float16", "int32"]),
        st.sampled_from(["float32", "float16"]),
    ),
    st.booleans(),
    st.integers(0, 99),
)
def test_quantize_linear_follows_its_formula(
    grain: tuple[Any, Any, dict[str, int]], dtypes: tuple[str, str, str], with_zero: bool, seed: int
) -> None:
    (shape, of_scale, attrs), (code, dtype, scaled) = grain, dtypes
    rng = np.random.default_rng(seed)
    scale = (rng.integers(1, 9, of_scale) / 4).astype(scaled)
    x = (rng.integers(-300, 300, shape) / (1 if dtype == "int32" else 4)).astype(dtype)
    zero = full_range(rng, of_scale, code) if with_zero else np.zeros(of_scale, code)
    full = (spread(a, shape, attrs["axis"], attrs["block_size"]) for a in (scale, zero))
    operands = [x, scale, zero] if with_zero else [x, scale]
    check_kernels(QUANTIZE_LINEAR, operands, [quantised(x, *full)], **attrs, to=code)


@settings(max_examples=50)
@given(
    grains(),
    st.sampled_from([*STORED_TYPES, "int32"]),
    st.sampled_from(["float32", "float16"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_dequantize_linear_follows_its_formula(
    grain: tuple[Any, Any, dict[str, int]], code: str, scaled: str, with_zero: bool, seed: int
) -> None:
    shape, of_scale, attrs = grain
    rng = np.random.default_rng(seed)
    x, scale = full_range(rng, shape, code), rng.uniform(1e-4, 2e-4, of_scale).astype(scaled)
    zero = full_range(rng, of_scale, code) if with_zero else np.zeros(of_scale, code)
    full = (spread(a, shape, attrs["axis"], attrs["block_size"]) for a in (scale, zero))
    with np.errstate(over="ignore"):
        wanted = dequantised(x, *full)
    check_kernels(DEQUANTIZE_LINEAR, [x, scale, zero] if with_zero else [x, scale], [wanted], **attrs)


@given(grains(), st.sampled_from(sorted(d.name for d in NARROW_FLOATS)), st.booleans(), st.booleans(), SEEDS)
def test_quantising_to_narrow_floats_divides_and_casts(
    grain: tuple[Any, Any, dict[str, int]], code: str, with_zero: bool, saturate: bool, seed: int
) -> None:
    shape, of_scale, attrs = grain
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.01, 2, of_scale).astype(np.float32)
    x = (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 6, shape)).astype(np.float32)
    more = [np.zeros(of_scale, code)] if with_zero else []
    full = spread(scale, shape, attrs["axis"], attrs["block_size"])
    (wanted,) = evaluate(CAST, x / full, to=code, saturate=saturate)
    check_kernels(QUANTIZE_LINEAR, [x, scale, *more], [wanted], **attrs, to=code, saturate=saturate)
    back = wanted.astype(np.float32) * full
    check_kernels(DEQUANTIZE_LINEAR, [wanted, scale, *more], [back], **attrs)


@given(st.integers(1, 9), st.sampled_from(["float4_e2m1fn", "float8_e4m3fn", "int4"]), SEEDS)
def test_scales_may_be_powers_of_two(length: int, code: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-9, 9, (3, -(-length // 4)))).astype(POWERS)
    x = rng.standard_normal((3, length)).astype(np.float32)
    attrs: dict[str, Any] = {"axis": 1, "block_size": 4}
    wide = scale.astype(np.float32)
    (codes,) = evaluate(QUANTIZE_LINEAR, x, wide, to=code, **attrs)
    check_kernels(QUANTIZE_LINEAR, [x, scale], [codes], to=code, **attrs)
    check_kernels(
        DEQUANTIZE_LINEAR, [codes, scale], [*evaluate(DEQUANTIZE_LINEAR, codes, wide, **attrs)], to="float32", **attrs
    )


@given(st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple), st.integers(0, 99), st.integers(-3, 3))
def test_dynamic_quantize_takes_its_scale_from_the_range(shape: tuple[int, ...], seed: int, shift: int) -> None:
    x = (np.random.default_rng(seed).standard_normal(shape) + shift).astype(np.float32)
    if x.size == 0:
        wanted: Any = [np.empty(shape, np.uint8), np.ones((), np.float32), np.zeros((), np.uint8)]
    else:
        wanted = onnxruntime_node("DynamicQuantizeLinear", [x], 3, opset=11)
    check_kernels(DYNAMIC_QUANTIZE_LINEAR, [x], wanted)


@pytest.mark.parametrize(
    "x", [[0.0, 0.0], [math.nan, 0.5], [math.inf, 1.0], [1e-30, 0.0], [-3.0, -1.0], [3.0e38, -3.0e38]]
)
def test_dynamic_quantize_of_odd_ranges_equals_onnxruntime(x: list[float]) -> None:
    array = np.asarray(x, np.float32)
    check_results(DYNAMIC_QUANTIZE_LINEAR, [array], onnxruntime_node("DynamicQuantizeLinear", [array], 3, opset=11))


@pytest.mark.parametrize("code", QUANTISED_TYPES)
def test_quantize_linear_of_float16_infinities_and_nan(code: str) -> None:
    x = np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, math.inf, -math.inf, math.nan, 3e38, -1e30], np.float32)
    one, zero = np.ones((), np.float32), np.asarray(7, code)
    ends = np.iinfo(code)
    least, most = ends.min, ends.max
    wanted = np.asarray([7, 9, 9, 7, 5, most, least, least, most, least], code)
    check_results(QUANTIZE_LINEAR, [x, one, zero], [wanted])
    check_results(QUANTIZE_LINEAR, [x, one, zero], onnxruntime_node("QuantizeLinear", [x, one, zero], opset=21))


@pytest.mark.parametrize("code", QUANTISED_TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_quantize_linear_of_large_tensors_equals_onnxruntime(code: str, axis: int) -> None:
    rng = np.random.default_rng(axis)
    x = rng.standard_normal((20, 30, 70)).astype(np.float32)
    scale = rng.uniform(0.001, 0.1, (x.shape[axis],)).astype(np.float32)
    zero = full_range(rng, scale.shape, code)
    (y,) = onnxruntime_node("QuantizeLinear", [x, scale, zero], opset=21, axis=axis)
    check_results(QUANTIZE_LINEAR, [x, scale, zero], [y], axis=axis)
    back = onnxruntime_node("DequantizeLinear", [y, scale, zero], opset=21, axis=axis)
    check_results(DEQUANTIZE_LINEAR, [y, scale, zero], back, axis=axis)


def test_quantize_linear_divides_in_the_type_of_its_attribute() -> None:
    x, scale = np.asarray([1.001, 300.3], np.float32), np.asarray(0.1, np.float32)
    wanted = np.rint(x.astype(np.float16) / scale.astype(np.float16)).astype(np.int16)
    check_results(QUANTIZE_LINEAR, [x, scale], [wanted], to="int16", precision="float16")


def test_a_single_scale_and_zero_point_may_differ_in_dimensions() -> None:
    x, scale, zero = np.asarray([1, 2], np.float32), np.asarray([0.5], np.float32), np.asarray(3, np.uint8)
    check_results(QUANTIZE_LINEAR, [x, scale, zero], [np.asarray([5, 7], np.uint8)])
    check_results(DEQUANTIZE_LINEAR, [np.asarray([5, 7], np.uint8), scale, zero], [x])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("of_scale", [(), (64,), (13, 64)])
def test_quantize_linear_allocates_nothing(dtype: str, of_scale: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, scale = rng.standard_normal((99, 64, 64)).astype(dtype), rng.uniform(0.01, 0.1, of_scale).astype(dtype)
    attrs = {"axis": 1, "block_size": 0}
    if len(of_scale) == 2:
        x, scale, attrs = x[:, :, 0].copy().repeat(20, 1), rng.uniform(0.01, 0.1, (13, 1280)).astype(dtype), {}
        attrs = {"axis": 0, "block_size": 8}
    zero = full_range(rng, scale.shape, "int8")
    check_no_allocation(QUANTIZE_LINEAR, [x, scale, zero], **attrs)
    y = evaluate(QUANTIZE_LINEAR, x, scale, zero, **attrs)[0]
    check_no_allocation(DEQUANTIZE_LINEAR, [y, scale, zero], **attrs)
    check_no_allocation(DEQUANTIZE_LINEAR, [y.astype("int32"), scale], **attrs)
    check_no_allocation(DYNAMIC_QUANTIZE_LINEAR, [x.astype("float32")])


ONE = np.ones((), np.float32)


@pytest.mark.parametrize(
    ("schema", "operands", "attrs", "message"),
    [
        (QUANTIZE_LINEAR, [np.ones(3), ONE], {}, "takes float32, float16 or int32, not float64"),
        (
            QUANTIZE_LINEAR,
            [np.ones(3, "f4"), ONE.astype("f8")],
            {},
            "a scale must be one of float16, float32, float8_e8m0fnu, not float64",
        ),
        (QUANTIZE_LINEAR, [np.ones((3, 4), "f4"), np.ones(3, "f4")], {}, r"scale of shape \(3,\) along axis 1"),
        (QUANTIZE_LINEAR, [np.ones(3, "f4"), ONE, np.zeros(2, "u1")], {}, "zero point of shape"),
        (QUANTIZE_LINEAR, [np.ones(3, "f4"), ONE, np.zeros((), "i4")], {}, "a zero point must be one of"),
        (QUANTIZE_LINEAR, [np.ones(3, "f4"), ONE, np.zeros((), "i1")], {"to": "uint8"}, "of 2 to 16 bits"),
        (
            QUANTIZE_LINEAR,
            [np.ones(3, "f4"), ONE],
            {"precision": "float64"},
            "divides in float32 or float16, not float64",
        ),
        (QUANTIZE_LINEAR, [np.ones(3, "f4"), np.ones(1, "f4")], {"axis": 0, "block_size": 2}, r"it must be \(2,\)"),
        (QUANTIZE_LINEAR, [np.ones(3, "f4"), ONE], {"block_size": -1}, "block_size is -1"),
        (DEQUANTIZE_LINEAR, [np.ones(3, "f4"), ONE], {}, "takes integers of 2 to 16 bits"),
        (DEQUANTIZE_LINEAR, [np.ones(3, "u1"), ONE, np.zeros((), "i1")], {}, "the zero point is int8"),
        (DEQUANTIZE_LINEAR, [np.ones(3, "u1"), ONE], {"to": "float64"}, "dequantises to float32"),
        (DYNAMIC_QUANTIZE_LINEAR, [np.ones(3, "f2")], {}, "takes float32, not float16"),
    ],
)
def test_quantize_linear_refuses_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands, **attrs)
