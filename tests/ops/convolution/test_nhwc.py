"""The channels-last convolution against the fused one on channels-first copies."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.fused import FUSED_BLOCKS, FUSED_CONV
from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE
from ops.schema.backends import ONEDNN
from ops.schema.schema import Kernel, OpSchema, Signature
from ops.tensor.errors import AttributeValueError, OpError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels, pitch, rows
from tests.helpers.ops.activations import PIECEWISE_LINEAR
from tests.helpers.ops.kernel_checks import (
    bind,
    check_strides,
    garbage,
    kernels,
    run,
    run_over,
    run_without_allocation,
    same,
    sign,
    strided_copies,
)
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import extents, lengths, window_attrs

Case = tuple[list[Array], dict[str, Any], dict[str, Any]]


def to_first(array: Array) -> Array:
    """Returns a dense (N, C, spatial...) copy of (N, spatial..., C)."""
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))


def reference(arrays: list[Array], attrs: dict[str, Any]) -> Array:
    """Computes with the channels-first kernel in plain numpy."""
    first = [to_first(a) if i in (0, 3) else a for i, a in enumerate(arrays)]
    signature = sign(FUSED_CONV, first, attrs)
    (y,) = run(FUSED_BLOCKS, signature, first)
    return np.moveaxis(y, 1, -1)


@st.composite
def convolutions(draw: Any) -> Case:
    """Draws one to three dimensions, groups, depthwise with multipliers, empty batches and single pixels."""
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2, 5]))
    channels, out = (group * draw(st.integers(1, n)) for n in (1 if group == 5 else 6, 20 // group))
    most = 3 if ndim < 3 else 2
    kernel, attrs = lengths(draw, ndim, most), window_attrs(draw, ndim, most, 2, 2) | {"group": group}
    sizes = [draw(st.integers(n, n + (9 if ndim < 3 else 3))) for n in extents(kernel, attrs["dilations"])]
    shapes = [(draw(st.integers(0, 2)), *sizes, channels), (out, channels // group, *kernel), (out,)]
    seed, dtype = draw(st.integers(0, 99)), draw(st.sampled_from(["float32", "float32", "float64"]))
    arrays = normal(seed, *shapes[: draw(st.integers(2, 3))], dtype=dtype)
    if len(arrays) > 2 and draw(st.booleans()):
        (y,) = sign(NHWC_CONV, arrays, attrs).outputs
        arrays += normal(seed + 1, y.shape, dtype=dtype)
    return arrays, attrs, draw(st.sampled_from(PIECEWISE_LINEAR))


def signed(arrays: list[Array], attrs: dict[str, Any], constant: bool = True) -> Signature:
    """Returns the signature; weights and bias are constants, as in a network, or not."""
    return sign(NHWC_CONV, arrays, attrs, (1, 2) if constant else ())


def in_wider(array: Array, before: int, behind: int) -> Array:
    """Returns a copy that lies in some channels of a wider tensor."""
    wide = garbage(TensorSpec((*array.shape[:-1], before + array.shape[-1] + behind), array.dtype))
    part = wide[..., before : before + array.shape[-1]]
    part[...] = array
    return part


def placed(kernel: Kernel, array: Array, before: int, behind: int) -> Array:
    """Returns such a copy, or a dense one where the kernel writes dense tensors only."""
    part = in_wider(array, before, behind)
    return part if kernel.writes(Layout.of(part)) else np.array(array, order="C")


def over_residual(kernel: Kernel, signature: Signature, arrays: list[Array]) -> Array:
    """Returns y written over the added tensor, in a wider tensor if the kernel can."""
    return run_over(kernel, signature, arrays, 3, placed(kernel, arrays[3], 1, 2))[0]


@settings(max_examples=50)
@given(convolutions(), st.booleans())
def test_nhwc_conv_kernels_equal_channels_first(case: Case, constant: bool) -> None:
    arrays, attrs, finish = case
    signature, wanted = signed(arrays, attrs | finish, constant), reference(arrays, attrs | finish)
    atol = 1e-4 * float(np.abs(wanted).max(initial=1))
    for kernel in kernels(NHWC_CONV, signature):
        (got,) = run(kernel, signature, arrays)
        same(got, wanted, rtol=1e-4, atol=atol)
        if len(arrays) > 3:
            same(over_residual(kernel, signature, arrays), got)


@settings(max_examples=20)
@given(convolutions())
def test_nhwc_conv_takes_pixels_inside_wider_tensors(case: Case) -> None:
    arrays, attrs, finish = case
    signature = signed(arrays, attrs | finish)
    for kernel in kernels(NHWC_CONV, signature):
        if kernel.backend == ONEDNN:
            continue  # the library's fast code knows dense tensors only
        (wanted,) = run(kernel, signature, arrays)
        atol = 1e-5 * float(np.abs(wanted).max(initial=1))
        for x in (in_wider(arrays[0], 3, 2), *strided_copies(arrays[0])):
            y = in_wider(garbage(signature.y), 2, 1)
            assert kernel.writes(Layout.of(y)) or y.size == 0
            others = [in_wider(a, 1, 3) if i == 3 else a for i, a in enumerate(arrays)]
            wide = y.base
            assert wide is not None
            edges = wide[..., :2].copy()
            bind(kernel, signature, [x, *others[1:]], [y])()
            same(y, wanted, rtol=1e-5, atol=atol)
            assert wide[..., :2].tobytes() == edges.tobytes()


LAYERS: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(1, 56, 56, 64), (64, 64, 3, 3), (64,), (1, 56, 56, 64)], {"pads": (1, 1, 1, 1)}),
    ([(2, 14, 14, 256), (80, 256, 1, 1), (80,), (2, 14, 14, 80)], {}),
    ([(1, 112, 112, 3), (64, 3, 7, 7), (64,)], {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ([(1, 57, 57, 96), (96, 1, 3, 3), (96,)], {"strides": (2, 2), "pads": (1, 1, 1, 1), "group": 96}),
    ([(1, 28, 28, 112), (112, 28, 1, 1), (112,)], {"group": 4}),
]


@pytest.mark.parametrize("finish", PIECEWISE_LINEAR[1:4])
@pytest.mark.parametrize(("shapes", "attrs"), LAYERS)
def test_nhwc_conv_of_network_layers_allocates_nothing(
    shapes: list[tuple[int, ...]], attrs: dict[str, Any], finish: dict[str, Any]
) -> None:
    arrays = normal(1, *shapes)
    signature, wanted = signed(arrays, attrs | finish), reference(arrays, attrs | finish)
    for kernel in kernels(NHWC_CONV, signature):
        y = placed(kernel, garbage(signature.y), 16, 0)
        run_without_allocation(kernel, signature, arrays, y)
        same(y, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("finish", PIECEWISE_LINEAR)
@pytest.mark.parametrize("group", [1, 4])
def test_nhwc_conv_keeps_nan_and_clips_infinities(finish: dict[str, Any], group: int) -> None:
    arrays = normal(2, (1, 1, 15, 4), (32, 4 // group, 1, 1), (32,), (1, 1, 15, 32))
    arrays[3][0, 0, :3] = np.array([[np.nan], [np.inf], [-np.inf]])
    arrays[0][0, 0, 4:6] = np.array([[np.nan], [np.inf]])
    attrs = finish | {"group": group}
    signature, wanted = signed(arrays, attrs), reference(arrays, attrs)
    for kernel in kernels(NHWC_CONV, signature):
        same(run(kernel, signature, arrays)[0], wanted, rtol=1e-4, atol=1e-4)


def test_the_pixels_of_a_part_of_the_channels_are_dense() -> None:
    wide = np.zeros((2, 3, 4, 8), np.float32)
    assert dense_pixels(Layout.of(wide[..., 2:5]))
    assert pitch(wide[..., 2:5]) == 8
    assert rows(wide[..., 2:5]).shape == (24, 3)
    assert np.shares_memory(rows(wide[..., 2:5]), wide)
    assert dense_pixels(Layout.of(wide[:1, :1, :1, ::-1][..., :1]))
    for other in (wide[:, ::2], wide[..., ::2], np.moveaxis(wide, 1, 3), wide[:, ::-1], wide[:, :, 1:]):
        assert not dense_pixels(Layout.of(other))


def test_nhwc_conv_refuses_operands_that_do_not_fit() -> None:
    x, w, b = (TensorSpec(s, np.dtype("float32")) for s in ((1, 9, 9, 8), (4, 8, 3, 3), (4,)))
    assert NHWC_CONV.sign([x, w, b], {}).y == TensorSpec((1, 7, 7, 4), np.dtype("float32"))
    with pytest.raises(ShapeError, match=r"the tensor to add is float32\[1,9,9,8\], but the convolution is"):
        NHWC_CONV.sign([x, w, b, x], {})
    with pytest.raises(ShapeError, match="do not fit 9 channels"):
        NHWC_CONV.sign([x.with_shape((1, 8, 9, 9)), w], {})
    with pytest.raises(AttributeValueError, match="activation 'none' has no low and no high"):
        NHWC_CONV.sign([x, w], {"low": 0.0})
    with pytest.raises(OpError, match="float16"):
        NHWC_CONV.sign([s.with_dtype("float16") for s in (x, w)], {})


@pytest.mark.parametrize("schema", [NHWC_CONV, NHWC_CONV_TRANSPOSE])
@given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 3), st.sampled_from(["float32", "float64"]))
def test_bits_of_one_output_do_not_depend_on_gaps_between_pixels(
    schema: OpSchema, channels: int, size: int, outputs: int, dtype: str
) -> None:
    filters = (channels, outputs) if schema is NHWC_CONV_TRANSPOSE else (outputs, channels)
    x, w = normal(0, (1, size, size, channels), (*filters, 1, 1))
    check_strides(schema, [x.astype(dtype), w.astype(dtype)], rtol=1e-5, atol=1e-5)
