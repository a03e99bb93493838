"""Quantised channels-last convolutions, against those of ONNX, which are channels-first, and sums in float64."""

from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.quantised import nhwc_tiled
from ops.quantised.conv import CONV_INTEGER, QLINEAR_CONV
from ops.quantised.depthwise import DEPTHWISE
from ops.quantised.nhwc_conv import NHWC_QUANTISED_CONV
from ops.quantised.nhwc_tiled import TILED
from ops.schema.schema import Kernel, Signature, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import (
    check_no_allocation,
    check_overwrites,
    check_results,
    kernels,
    nested_copy,
    run,
    same,
    sign,
)
from tests.helpers.ops.sample_arrays import full_range
from tests.helpers.ops.window_cases import lengths, window_attrs

Attrs = dict[str, Any]
SINGLE = np.dtype("float32")


@frozen(eq=False)
class Case:
    """Inputs and attributes."""

    arrays: list[Array]
    attrs: Attrs

    @property
    def signature(self) -> Signature:
        """Returns the signature with constant weights, factors and biases."""
        return sign(NHWC_QUANTISED_CONV, self.arrays, self.attrs, (1, 2, 3))


def case_of(  # noqa: PLR0917
    rng: np.random.Generator, x: Array, w: Array, windows: Attrs, to: str, residual: bool, strange: bool = False
) -> Case:
    """Draws the rest of a case; with these factors most results lie inside the range of the type."""
    taps, out = int(np.prod(w.shape[1:])), len(w)
    factor = (rng.random(out) / (40 * max(taps, 1) ** 0.5)).astype(np.float32)
    if strange:
        factor[rng.integers(out)] = rng.choice(np.array([np.nan, np.inf, -np.inf], np.float32))
    bias = rng.integers(-20000, 20000, out).astype(np.int32)
    zero = int(full_range(rng, (), x.dtype.name))
    attrs = {**windows, "x_zero": zero, "to": to}
    if to != "float32":
        low, high = sorted(full_range(rng, (2,), to).tolist())
        attrs |= {"y_zero": int(full_range(rng, (), to)), **({"low": low, "high": high} if rng.random() < 0.5 else {})}
    elif rng.random() < 0.5:
        attrs |= {"low": 0.0, "high": 6.0}
    case = Case([x, w, factor, bias], attrs)
    if not residual or to == "float32":
        return case
    dtype = str(rng.choice(["uint8", "int8"]))
    added = full_range(rng, case.signature.y.shape, dtype)
    own = {"own_zero": int(full_range(rng, (), "uint8")), "own_factor": float(np.float32(rng.random() * 2))}
    rest = {"residual_zero": int(full_range(rng, (), dtype)), "residual_factor": float(np.float32(rng.random() * 2))}
    return Case([*case.arrays, added], {**attrs, **own, **rest})


@st.composite
def depthwise(draw: Any) -> Case:
    """Draws convolutions with one channel a group."""
    rng, channels = np.random.default_rng(draw(st.integers(0, 999))), draw(st.sampled_from([1, 3, 15, 16, 17, 40, 96]))
    windows = window_attrs(draw, 2, 2, 2, 2) | {"group": channels}
    sizes = draw(st.tuples(st.integers(0, 2), st.integers(5, 9), st.integers(5, 9)))
    x = full_range(rng, (*sizes, channels), draw(st.sampled_from(["uint8", "int8"])))
    w = full_range(rng, (channels, 1, draw(st.integers(1, 3)), 3), "int8")
    to = draw(st.sampled_from(["uint8", "uint8", "int8", "float32"]))
    return case_of(rng, x, w, windows, to, draw(st.booleans()))


@st.composite
def cases(draw: Any, deep: bool = False) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    each = draw(st.sampled_from([4, 8, 16, 20, 64] if deep else [1, 2, 3, 4, 5, 8]))
    out, batch = draw(st.sampled_from([1, 2, 7, 16, 17, 33] if deep else [1, 2, 3, 17])), draw(st.integers(0, 2))
    kernel = lengths(draw, ndim, 3)
    sizes = [draw(st.integers(5, 9)) for _ in range(ndim)] if ndim < 3 else [5] * 3
    windows = window_attrs(draw, ndim, 3, 2, 2) | {"group": group}
    x = full_range(rng, (batch, *sizes, group * each), draw(st.sampled_from(["uint8", "uint8", "int8"])))
    w = full_range(rng, (group * out, each, *kernel), "int8")
    to = draw(st.sampled_from(["uint8", "uint8", "int8", "float32"]))
    return case_of(rng, x, w, windows, to, draw(st.booleans()), draw(st.integers(0, 4)) == 0)


def rounded(real: Array, zero: int, low: float, high: float) -> Array:
    """Returns quantised values, still as float32."""
    with np.errstate(all="ignore"):
        return np.fmin(np.fmax(np.rint(real) + np.float32(zero), np.float32(low)), np.float32(high))


def wanted(case: Case) -> Array:
    """Computes the result with ONNX's integer convolution and numpy."""
    x, w, factor, bias, *rest = case.arrays
    attrs = case.attrs
    windows = {k: attrs[k] for k in ("strides", "dilations", "pads", "group")}
    first = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    zeros = np.asarray(attrs["x_zero"], x.dtype), np.asarray(0, np.int8)
    sums = np.moveaxis(evaluate(CONV_INTEGER, first, w, *zeros, **windows)[0], 1, -1)
    with np.errstate(all="ignore"):
        real = (sums + bias).astype(np.float32) * factor
        if rest:
            own = rounded(real, attrs["own_zero"], 0, 255) - np.float32(attrs["own_zero"])
            added = rest[0].astype(np.float32) - np.float32(attrs["residual_zero"])
            real = own * np.float32(attrs["own_factor"]) + added * np.float32(attrs["residual_factor"])
        if attrs["to"] == "float32":
            return np.asarray(np.clip(real, attrs.get("low", -np.inf), attrs.get("high", np.inf)))
    ends = np.iinfo(attrs["to"])
    held = rounded(real, attrs["y_zero"], attrs.get("low", ends.min), attrs.get("high", ends.max))
    return held.astype(attrs["to"])


def check(case: Case) -> None:
    """Checks each kernel, also where x and the residual lie inside arrays that are longer along an axis."""
    signature, answer = case.signature, wanted(case)
    x, *constants = case.arrays[:4]
    for kernel in kernels(NHWC_QUANTISED_CONV, signature):
        same(run(kernel, signature, case.arrays)[0], answer)
        for axis in range(x.ndim):
            inside = [nested_copy(x, axis), *constants, *(nested_copy(r, axis) for r in case.arrays[4:])]
            same(run(kernel, signature, inside)[0], answer)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_nhwc_quantised_conv_kernels_equal_integer_sums(case: Case) -> None:
    check(case)


@settings(max_examples=30, deadline=None)
@given(cases(), st.integers(1, 300))
def test_quantised_convolutions_whose_lines_are_copied_in_blocks_equal_integer_sums(case: Case, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nhwc_tiled, "_COPY_BYTES", most)
        check(case)


def test_a_block_of_a_quantised_convolution_that_reads_nothing_but_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, w = full_range(rng, (1, 5, 1), "uint8"), full_range(rng, (1, 1, 2), "int8")
    monkeypatch.setattr(nhwc_tiled, "_COPY_BYTES", 1)
    check(case_of(rng, x, w, {"pads": (0, 2), "strides": (1,), "dilations": (1,), "group": 1}, "uint8", False))


def test_blocks_of_copied_lines_bound_the_workspace_of_a_quantised_convolution() -> None:
    def workspace(size: int) -> int:
        rng = np.random.default_rng(0)
        x, w = full_range(rng, (2, size, size, 3), "uint8"), full_range(rng, (8, 3, 7, 7), "int8")
        case = case_of(rng, x, w, {"strides": (2, 2), "pads": (3, 3, 3, 3)}, "uint8", False)
        return TILED.workspace(case.signature)

    assert workspace(64) < 2 * 70 * 70 * 3
    assert max(workspace(224), workspace(448)) < 70_000


@settings(max_examples=20, deadline=None)
@given(cases(deep=True))
def test_nhwc_quantised_conv_of_many_channels_equals_integer_sums(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=240, deadline=None)
@given(st.one_of(cases(), cases(deep=True)))
def test_nhwc_quantised_conv_equals_integer_sums_in_many_cases(case: Case) -> None:
    check(case)


def check_native(case: Case, parts: int, extra: int) -> None:
    """Checks each compiled kernel that takes the case."""
    signature, answer = case.signature, wanted(case)
    for kernel in (TILED, DEPTHWISE):
        if kernel.supports(signature):
            check_parts(kernel, case, answer, parts, extra)


def check_parts(kernel: Kernel, case: Case, answer: Array, parts: int, extra: int) -> None:
    """Checks one kernel in parts, between guards, into an output of its own and over the residual."""
    signature = case.signature
    x, *constants = case.arrays[:4]
    inputs = [placed(x, extra), *constants, *(placed(r, extra) for r in case.arrays[4:])]
    (got,) = run_native(kernel, signature, inputs, parts, extra)
    same(got, answer)
    if NHWC_QUANTISED_CONV.overwrites(signature):
        (over,) = run_native(kernel, signature, inputs, parts, extra, over=4)
        same(over, answer)


@settings(max_examples=30, deadline=None)
@given(st.one_of(depthwise(), cases(deep=True)), st.integers(0, 5), st.integers(1, 3))
def test_nhwc_quantised_conv_takes_wide_pixels_odd_addresses_and_parts(case: Case, extra: int, parts: int) -> None:
    check_native(case, parts, extra)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.one_of(cases(), cases(deep=True), depthwise()), st.integers(0, 20), st.integers(1, 5))
def test_nhwc_quantised_conv_is_the_same_in_many_parts(case: Case, extra: int, parts: int) -> None:
    check_native(case, parts, extra)


@settings(max_examples=15, deadline=None)
@given(cases())
def test_nhwc_quantised_conv_may_overwrite_its_residual(case: Case) -> None:
    check_overwrites(NHWC_QUANTISED_CONV, case.arrays, **case.attrs)


def test_nhwc_quantised_conv_equals_qlinear_conv() -> None:
    rng = np.random.default_rng(3)
    x, w = full_range(rng, (1, 6, 6, 4), "uint8"), full_range(rng, (5, 4, 3, 3), "int8")
    x_scale, y_scale = np.float32(0.02), np.float32(0.5)
    w_scale = rng.random(5).astype(np.float32) / 10
    bias = np.arange(5, dtype=np.int32)
    zeros = np.uint8(7), np.int8(0), np.uint8(100)
    first = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    operands = (first, x_scale, zeros[0], w, w_scale, zeros[1], y_scale, zeros[2], bias)
    (y,) = evaluate(QLINEAR_CONV, *map(np.asarray, operands), pads=(1, 1, 1, 1))
    factor = w_scale * x_scale / y_scale
    attrs: Attrs = {"x_zero": 7, "y_zero": 100, "pads": (1, 1, 1, 1)}
    check_results(NHWC_QUANTISED_CONV, [x, w, factor, bias], [np.moveaxis(y, 1, -1)], **attrs)


def test_nhwc_quantised_conv_allocates_nothing() -> None:
    rng = np.random.default_rng(0)
    x, w = full_range(rng, (1, 64, 64, 32), "uint8"), full_range(rng, (32, 32, 3, 3), "int8")
    case = case_of(rng, x, w, {"pads": (1, 1, 1, 1), "group": 1}, "uint8", residual=True)
    check_no_allocation(NHWC_QUANTISED_CONV, case.arrays, **case.attrs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": "int16"},
        {"y_zero": 256},
        {"low": 9.0, "high": 8.0},
        {"to": "float32", "residual": True},
        {"bias": np.zeros(2, np.int64)},
        {"w": np.zeros((2, 3, 1, 1), np.uint8)},
        {"x": np.zeros((1, 4, 4, 3), np.float32)},
        {"x": np.zeros((4, 3), np.uint8)},
    ],
)
def test_nhwc_quantised_conv_refuses_operands_that_do_not_fit(wrong: Attrs) -> None:
    x, w = wrong.pop("x", np.zeros((1, 4, 4, 3), np.uint8)), wrong.pop("w", np.zeros((2, 3, 1, 1), np.int8))
    arrays = [x, w, np.ones(2, np.float32), wrong.pop("bias", np.zeros(2, np.int32))]
    if wrong.pop("residual", False):
        arrays.append(np.zeros((1, 4, 4, 2), np.uint8))
    with pytest.raises(OpError):
        evaluate(NHWC_QUANTISED_CONV, *arrays, **wrong)
