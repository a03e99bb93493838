"""Convolutions of bytes, against exact sums in int64, convolution in float64, and onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.conv import CONV
from ops.quantised.conv import CONV_INTEGER, QLINEAR_CONV
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import exact_factors, full_range
from tests.helpers.ops.window_cases import lengths, window_attrs

Case = tuple[Array, Array, Array, Array, dict[str, Any]]


def padded(x: Array, pads: tuple[int, ...], value: float) -> Array:
    half = len(pads) // 2
    return np.pad(x, [(0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True)], constant_values=value)


def exact(x: Array, w: Array, x_zero: Array, w_zero: Array, attrs: dict[str, Any]) -> Array:
    """Sums over taps and channels in int64, one output pixel after the other."""
    group, strides, dilations = attrs["group"], attrs["strides"], attrs["dilations"]
    left = padded(x.astype(np.int64) - int(x_zero.reshape(())), attrs["pads"], 0)
    right = w.astype(np.int64) - w_zero.astype(np.int64).reshape([-1] + [1] * (w.ndim - 1))
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [(n - e) // s + 1 for n, e, s in zip(left.shape[2:], extents, strides, strict=True)]
    y = np.empty((len(x), len(w), *sizes), np.int64)
    each = len(w) // group
    for o in range(len(w)):
        channels = slice(o // each * w.shape[1], (o // each + 1) * w.shape[1])
        for at in np.ndindex(*sizes):
            window = [slice(i * s, i * s + e, d) for i, s, e, d in zip(at, strides, extents, dilations, strict=True)]
            y[(slice(None), o, *at)] = (left[(slice(None), channels, *window)] * right[o]).sum(tuple(range(1, x.ndim)))
    return y


@st.composite
def convolutions(draw: Any) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 3]))
    inside, out, batch = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    kernel = lengths(draw, ndim, 3)
    sizes = [draw(st.integers(5, 7)) for _ in range(ndim)] if ndim < 3 else [5] * 3
    attrs = window_attrs(draw, ndim, 3, 2, 2) | {"group": group}
    left, right = draw(st.sampled_from(["uint8", "int8"])), draw(st.sampled_from(["uint8", "int8"]))
    x, w = (
        full_range(rng, (batch, group * inside, *sizes), left),
        full_range(rng, (group * out, inside, *kernel), right),
    )
    of_weights = draw(st.sampled_from([(), (1,), (group * out,)]))
    return x, w, full_range(rng, (), left), full_range(rng, of_weights, right), attrs


@settings(max_examples=30, deadline=None)
@given(convolutions(), st.integers(0, 2))
def test_convolutions_of_bytes_are_exact(case: Case, zeros: int) -> None:
    x, w, x_zero, w_zero, attrs = case
    given_zeros = [x_zero, w_zero][:zeros]
    x_zero, w_zero, *_ = (*given_zeros, np.zeros((), "i8"), np.zeros((), "i8"))[:2]
    wanted = exact(x, w, x_zero, w_zero, attrs).astype(np.int32)
    check_kernels(CONV_INTEGER, [x, w, *given_zeros], [wanted], **attrs)


@settings(max_examples=30, deadline=None)
@given(convolutions(), st.sampled_from(["uint8", "int8"]), st.booleans())
def test_quantised_convolutions_are_scaled_and_rounded(case: Case, out: str, with_bias: bool) -> None:
    x, w, x_zero, w_zero, attrs = case
    rng = np.random.default_rng(w.size)
    # Powers of two make every product exact, so that halves are met and must go to even.
    x_scale, w_scale = np.asarray(0.5, np.float32), np.exp2(rng.integers(-3, 0, w_zero.shape)).astype(np.float32)
    y_scale, y_zero, bias = (
        np.asarray(128, np.float32),
        full_range(rng, (), out),
        full_range(rng, (len(w),), "int16").astype("i4"),
    )
    by_channel = [1, -1] + [1] * (x.ndim - 2)
    sums = exact(x, w, x_zero, w_zero, attrs) + (bias.reshape(by_channel) if with_bias else 0)
    real = np.rint(sums * 0.5 * w_scale.astype(np.float64).reshape(by_channel) / 128) + int(y_zero)
    wanted = np.clip(real, np.iinfo(out).min, np.iinfo(out).max).astype(out)
    operands = [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero] + [bias] * with_bias
    check_kernels(QLINEAR_CONV, operands, [wanted], **attrs)


LARGE: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 64, 40, 30), (40, 64, 3, 3), {"pads": (1, 1, 1, 1)}),
    ((1, 600, 20, 21), (33, 600, 1, 1), {}),
    ((1, 96, 50, 50), (96, 1, 3, 3), {"group": 96, "pads": (1, 1, 1, 1), "strides": (2, 2)}),
    ((1, 12, 110, 110), (24, 4, 5, 5), {"group": 3, "dilations": (2, 1), "pads": (3, 0, 1, 2)}),
    ((1, 80, 24, 24), (300, 40, 3, 3), {"group": 2}),
    ((2, 8, 10, 10), (1200, 2, 3, 3), {"group": 4}),
    ((1, 3, 210, 210), (5, 3, 17, 17), {"auto_pad": "SAME_UPPER"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("of_x", "of_w", "attrs"), LARGE)
@pytest.mark.parametrize("right", ["uint8", "int8"])
def test_large_quantised_conv_equals_onnxruntime_and_allocates_nothing(
    of_x: tuple[int, ...], of_w: tuple[int, ...], attrs: dict[str, Any], right: str
) -> None:
    rng = np.random.default_rng(1)
    x, w, x_zero, y_zero = (
        full_range(rng, of_x, "uint8"),
        exact_factors(rng, of_w, right),
        full_range(rng, (), "uint8"),
        full_range(rng, (), "uint8"),
    )
    w_zero = full_range(rng, (), right) if right == "uint8" else np.zeros(len(w), right)
    if right == "uint8":
        operands = [x, w, x_zero, w_zero]
        check_results(CONV_INTEGER, operands, onnxruntime_node("ConvInteger", operands, **attrs), **attrs)
    w_scale = rng.uniform(0.01, 0.02, w_zero.shape).astype(np.float32)
    x_scale, y_scale = np.asarray(0.03, np.float32), np.asarray(0.5, np.float32)
    bias = rng.integers(-9999, 9999, len(w)).astype(np.int32)
    operands = [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias]
    check_results(QLINEAR_CONV, operands, onnxruntime_node("QLinearConv", operands, **attrs), **attrs)
    check_no_allocation(QLINEAR_CONV, operands, **attrs)


def test_quantised_conv_of_the_largest_sums_stays_exact() -> None:
    x, w = np.full((1, 90, 20, 20), 255, np.uint8), np.full((3, 90, 3, 3), 255, np.uint8)
    w[1, ::2] = 254
    wide, one = [a.astype(np.float64) for a in (x, w)], np.zeros((), np.uint8)
    (wanted,) = evaluate(CONV, *wide)
    check_results(CONV_INTEGER, [x, w, one, one], [wanted.astype(np.int32)])


def test_quantised_conv_of_a_large_layer_needs_little_workspace() -> None:
    byte, one = np.dtype("uint8"), TensorSpec((), np.dtype("uint8"))
    x, w = TensorSpec((1, 512, 28, 28), byte), TensorSpec((512, 512, 3, 3), byte)
    signature = CONV_INTEGER.sign((x, w, one, one), {"pads": (1, 1, 1, 1)})
    assert CONV_INTEGER.kernel(signature).workspace(signature) < 2**19


ONE, ZERO, IMAGE, WEIGHTS = (
    np.ones((), "f4"),
    np.zeros((), "u1"),
    np.ones((1, 2, 3, 3), "u1"),
    np.ones((4, 2, 2, 2), "u1"),
)
LINEAR = [IMAGE, ONE, ZERO, WEIGHTS, ONE, ZERO, ONE, ZERO]


@pytest.mark.parametrize(
    ("schema", "operands", "message"),
    [
        (CONV_INTEGER, [IMAGE.astype("i2"), WEIGHTS], "takes int8 and uint8, not int16 and uint8"),
        (CONV_INTEGER, [IMAGE, WEIGHTS, ZERO, np.zeros(3, "u1")], "it must have 1 or 4 numbers"),
        (CONV_INTEGER, [IMAGE, WEIGHTS, np.zeros(4, "u1")], "it must have 1 or 1 numbers"),
        (CONV_INTEGER, [IMAGE, WEIGHTS, ZERO.astype("i1")], "a zero point of int8 for uint8"),
        (QLINEAR_CONV, [*LINEAR, np.zeros(3, "i4")], r"bias must be int32\[4\]"),
        (QLINEAR_CONV, [*LINEAR, np.zeros(4, "i8")], r"bias must be int32\[4\], not int64\[4\]"),
        (QLINEAR_CONV, [*LINEAR[:7], ZERO.astype("i4")], "must be one of int8, uint8"),
        (QLINEAR_CONV, [IMAGE, ONE.astype("f8"), *LINEAR[2:]], "a scale must be"),
    ],
)
def test_quantised_conv_refuses_operands_that_do_not_fit(schema: OpSchema, operands: list[Array], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands)
