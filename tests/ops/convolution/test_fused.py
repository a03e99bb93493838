"""The fused convolution against its parts: the convolution, an addition, an activation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.conv import CONV
from ops.convolution.fused import (
    FUSED_BLOCKS,
    FUSED_COLUMNS,
    FUSED_CONV,
    FUSED_DEPTHWISE,
    FUSED_PACKED,
    FUSED_POINTWISE,
    pays,
)
from ops.convolution.packed import has_avx512
from ops.elementwise.activation import LEAKY_RELU
from ops.schema.schema import Kernel, Signature, evaluate
from ops.tensor.errors import AttributeValueError, OpError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.activations import PIECEWISE_LINEAR
from tests.helpers.ops.kernel_checks import kernels, run, run_over, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import lengths, window_attrs

Case = tuple[list[Array], dict[str, Any], dict[str, Any]]
needs_avx512 = pytest.mark.skipif(not has_avx512(), reason="the kernel is compiled for AVX-512, which is not here")


def _parts(arrays: list[Array], attrs: dict[str, Any], finish: dict[str, Any]) -> Array:
    """Computes the convolution, the addition and the activation one after the other."""
    (y,) = evaluate(CONV, *arrays[:3], **attrs)
    if len(arrays) > 3:
        y += arrays[3]
    if finish.get("activation") == "leaky_relu":
        (y,) = evaluate(LEAKY_RELU, y, alpha=finish["slope"])
        return y
    clipped: Array = y.clip(finish.get("low", -math.inf), finish.get("high", math.inf))
    return clipped


def _sign(arrays: list[Array], attrs: dict[str, Any]) -> Signature:
    """Returns the signature with constant weights and bias, as in a network."""
    return sign(FUSED_CONV, arrays, attrs, (1, 2))


@st.composite
def fused(draw: Any) -> Case:
    """Draws convolutions of one or two dimensions, in groups or not, that any of the kernels may take."""
    ndim, group = draw(st.integers(1, 2)), draw(st.sampled_from([1, 1, 1, 2, 5]))
    channels, out = (group * draw(st.integers(1, n)) for n in (1 if group == 5 else 6, 40 // group))
    kernel, attrs = lengths(draw, ndim, 3), window_attrs(draw, ndim, 2, 1, 2) | {"group": group}
    sizes = draw(st.lists(st.integers(3, 18), min_size=ndim, max_size=ndim))
    shapes = [(draw(st.integers(1, 2)), channels, *sizes), (out, channels // group, *kernel), (out,)]
    seed, dtype = draw(st.integers(0, 99)), draw(st.sampled_from(["float32", "float32", "float64"]))
    arrays = normal(seed, *shapes[: draw(st.integers(2, 3))], dtype=dtype)
    if len(arrays) > 2 and draw(st.booleans()):
        (y,) = sign(CONV, arrays, attrs).outputs
        arrays += normal(seed + 1, y.shape, dtype=dtype)
    return arrays, attrs, draw(st.sampled_from(PIECEWISE_LINEAR))


@settings(max_examples=40)
@given(fused())
def test_fused_conv_kernels_equal_their_parts(case: Case) -> None:
    arrays, attrs, finish = case
    signature, wanted = _sign(arrays, attrs | finish), _parts(*case)
    for kernel in kernels(FUSED_CONV, signature):
        (got,) = run(kernel, signature, arrays)
        same(got, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max(initial=1)))
        if len(arrays) > 3:
            assert run_over(kernel, signature, arrays, 3)[0].tobytes() == got.tobytes()


LAYERS: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(1, 64, 56, 56), (64, 64, 3, 3), (64,), (1, 64, 56, 56)], {"pads": (1, 1, 1, 1)}),
    ([(2, 256, 14, 14), (80, 256, 1, 1), (80,), (2, 80, 14, 14)], {}),
    ([(1, 3, 112, 112), (64, 3, 7, 7), (64,)], {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ([(1, 96, 57, 57), (96, 1, 3, 3), (96,)], {"strides": (2, 2), "pads": (1, 1, 1, 1), "group": 96}),
    ([(1, 144, 28, 28), (24, 144, 1, 1), (24,), (1, 24, 28, 28)], {}),
]


@pytest.mark.parametrize("finish", PIECEWISE_LINEAR[1:4])
@pytest.mark.parametrize(("shapes", "attrs"), LAYERS)
def test_fused_conv_of_network_layers_allocates_nothing(
    shapes: list[tuple[int, ...]], attrs: dict[str, Any], finish: dict[str, Any]
) -> None:
    arrays = normal(1, *shapes)
    signature, wanted = _sign(arrays, attrs | finish), _parts(arrays, attrs, finish)
    for kernel in kernels(FUSED_CONV, signature):
        y = run_without_allocation(kernel, signature, arrays)
        same(y, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("finish", PIECEWISE_LINEAR)
def test_fused_conv_keeps_nan_and_clips_infinities(finish: dict[str, Any]) -> None:
    arrays = normal(2, (1, 4, 1, 15), (32, 4, 1, 1), (32,), (1, 32, 1, 15))
    arrays[3][0, :, 0, :3] = np.nan, np.inf, -np.inf
    signature, wanted = _sign(arrays, finish), _parts(arrays, {}, finish)
    for kernel in kernels(FUSED_CONV, signature):
        same(run(kernel, signature, arrays)[0], wanted, rtol=1e-4, atol=1e-4)
    depthwise = normal(3, (1, 4, 1, 15), (4, 1, 1, 1), (4,))
    depthwise[0][0, 0, 0, :3] = np.nan, np.inf, -np.inf
    signature, wanted = _sign(depthwise, finish | {"group": 4}), _parts(depthwise, {"group": 4}, finish)
    for kernel in kernels(FUSED_CONV, signature):
        same(run(kernel, signature, depthwise)[0], wanted, rtol=1e-4, atol=1e-4)


def _chosen(x: tuple[int, ...], w: tuple[int, ...], constants: frozenset[int], **attrs: Any) -> Kernel:
    specs = [TensorSpec(s, np.dtype("float32")) for s in (x, w)]
    return FUSED_CONV.kernel(FUSED_CONV.sign(specs, attrs, constants))


@needs_avx512
def test_fused_conv_uses_the_kernel_of_the_convolution_alone() -> None:
    packed, constant = ((1, 8, 9, 9), (32, 8, 3, 3)), frozenset({1})
    assert _chosen(*packed, constant) is FUSED_PACKED
    assert _chosen(*packed, frozenset()) is FUSED_COLUMNS
    assert _chosen((1, 8, 9, 9), (15, 8, 3, 3), constant) is FUSED_COLUMNS
    assert _chosen((1, 8, 9, 9), (15, 8, 1, 1), constant) is FUSED_POINTWISE
    assert _chosen((1, 8, 9, 9), (8, 1, 3, 3), constant, group=8) is FUSED_DEPTHWISE
    leak = {"activation": "leaky_relu", "slope": 0.1}
    assert _chosen((1, 8, 9, 9), (8, 1, 3, 3), constant, group=8, **leak) is FUSED_BLOCKS


@needs_avx512
def test_fusing_does_not_pay_where_sums_would_go_through_room_of_their_own() -> None:
    few, many = (normal(0, (1, 8, 9, 9), (n, 8, 3, 3), (n,), (1, n, 7, 7)) for n in (15, 32))
    assert pays(_sign(many, {"activation": "leaky_relu", "slope": 0.1}))
    assert pays(_sign(few[:3], {"activation": "clip", "low": 0.0}))
    assert not pays(_sign(few, {}))
    assert not pays(_sign(few[:3], {"activation": "leaky_relu", "slope": 0.1}))


def test_fused_conv_refuses_operands_that_do_not_fit() -> None:
    x, w, b = (TensorSpec(s, np.dtype("float32")) for s in ((1, 8, 9, 9), (4, 8, 3, 3), (4,)))
    with pytest.raises(ShapeError, match=r"the tensor to add is float32\[1,8,9,9\], but the convolution is"):
        FUSED_CONV.sign([x, w, b, x], {})
    with pytest.raises(AttributeValueError, match="activation 'none' has no low and no high"):
        FUSED_CONV.sign([x, w], {"low": 0.0})
    with pytest.raises(OpError, match="float16"):
        FUSED_CONV.sign([s.with_dtype("float16") for s in (x, w)], {})
