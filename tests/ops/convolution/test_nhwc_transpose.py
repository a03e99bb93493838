"""The channels-last transposed convolution against the channels-first one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.convolution.transpose_gemm import COLUMNS
from ops.schema.schema import Signature
from ops.tensor.errors import OpError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.kernel_checks import garbage, kernels, run, run_without_allocation, same, sign, strided_copies
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import lengths, window_attrs

Case = tuple[list[Array], dict[str, Any]]


def _reference(arrays: list[Array], attrs: dict[str, Any]) -> Array:
    first = [np.ascontiguousarray(np.moveaxis(arrays[0], -1, 1)), *arrays[1:]]
    (y,) = run(COLUMNS, sign(CONV_TRANSPOSE, first, attrs), first)
    return np.moveaxis(y, 1, -1)


def _sign(arrays: list[Array], attrs: dict[str, Any], constant: bool = True) -> Signature:
    return sign(NHWC_CONV_TRANSPOSE, arrays, attrs, (1, 2) if constant else ())


@st.composite
def _cases(draw: Any) -> Case:
    """Draws one to three dimensions, groups, strides, pads and output paddings."""
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 3]))
    most = 3 if ndim < 3 else 2
    channels, out = (group * draw(st.integers(1, 4)) for _ in range(2))
    attrs = window_attrs(draw, ndim, most, 2, 1) | {"group": group}
    attrs["output_padding"] = tuple(draw(st.integers(0, s - 1)) for s in attrs["strides"])
    sizes = [draw(st.integers(1, 7 if ndim < 3 else 3)) for _ in range(ndim)]
    shapes = [(draw(st.integers(0, 2)), *sizes, channels), (channels, out // group, *lengths(draw, ndim, most)), (out,)]
    arrays = normal(
        draw(st.integers(0, 99)),
        *shapes[: draw(st.integers(2, 3))],
        dtype=draw(st.sampled_from(["float32", "float64"])),
    )
    return arrays, attrs


@settings(max_examples=50)
@given(_cases(), st.booleans())
def test_nhwc_conv_transpose_kernels_equal_channels_first(case: Case, constant: bool) -> None:
    arrays, attrs = case
    try:
        signature = _sign(arrays, attrs, constant)
    except ShapeError:
        assume(False)
        return
    wanted = _reference(arrays, attrs)
    atol = 1e-4 * float(np.abs(wanted).max(initial=1))
    for kernel in kernels(NHWC_CONV_TRANSPOSE, signature):
        same(run(kernel, signature, arrays)[0], wanted, rtol=1e-4, atol=atol)
        for x in strided_copies(arrays[0]):
            same(run(kernel, signature, [x, *arrays[1:]])[0], wanted, rtol=1e-4, atol=atol)


@given(_cases())
def test_operations_are_the_products_that_are_added(case: Case) -> None:
    (x, w, *_), attrs = case
    ones = [np.ones_like(x), np.ones_like(w)]
    try:
        signature = _sign(ones, attrs)
    except ShapeError:
        assume(False)
        return
    added = _reference(ones, attrs).sum()
    assert NHWC_CONV_TRANSPOSE.cost(signature).flops == 2 * added
    first = [np.moveaxis(ones[0], -1, 1), ones[1]]
    assert CONV_TRANSPOSE.cost(sign(CONV_TRANSPOSE, first, attrs)).flops == 2 * added


def test_nhwc_conv_transpose_allocates_nothing_inside_a_wider_tensor() -> None:
    arrays = normal(0, (1, 28, 28, 48), (32, 24, 2, 2), (24,))
    arrays[0] = arrays[0][..., 8:40]
    attrs = {"strides": (2, 2)}
    signature, wanted = _sign(arrays, attrs), _reference(arrays, attrs)
    for kernel in kernels(NHWC_CONV_TRANSPOSE, signature):
        wide = garbage(TensorSpec((1, 56, 56, 40), arrays[0].dtype))
        before, y = wide[..., :16].copy(), wide[..., 16:]
        if not kernel.writes(Layout.of(y)):
            y = garbage(signature.y)
        run_without_allocation(kernel, signature, arrays, y)
        same(y, wanted, rtol=1e-4, atol=1e-4)
        assert wide[..., :16].tobytes() == before.tobytes()


def test_nhwc_conv_transpose_keeps_nan_where_it_is_read() -> None:
    arrays = normal(1, (1, 3, 3, 2), (2, 2, 2, 2))
    arrays[0][0, 1, 1] = np.nan, np.inf
    signature, wanted = _sign(arrays, {}), _reference(arrays, {})
    for kernel in kernels(NHWC_CONV_TRANSPOSE, signature):
        same(run(kernel, signature, arrays)[0], wanted, rtol=1e-4, atol=1e-4)


def test_nhwc_conv_transpose_refuses_operands_that_do_not_fit() -> None:
    x, w = (TensorSpec(s, np.dtype("float32")) for s in ((1, 9, 9, 8), (8, 4, 3, 3)))
    assert NHWC_CONV_TRANSPOSE.sign([x, w], {}).y == TensorSpec((1, 11, 11, 4), np.dtype("float32"))
    with pytest.raises(ShapeError, match="do not fit"):
        NHWC_CONV_TRANSPOSE.sign([x.with_shape((1, 8, 9, 9)), w], {})
    with pytest.raises(OpError, match="float16"):
        NHWC_CONV_TRANSPOSE.sign([s.with_dtype("float16") for s in (x, w)], {})
