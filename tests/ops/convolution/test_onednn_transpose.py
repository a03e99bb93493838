"""oneDNN's transposed convolution against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE
from ops.convolution.onednn_transpose import DECONVOLUTION, NHWC_DECONVOLUTION
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.onednn.library import objection
from ops.schema.backends import NUMPY
from ops.schema.schema import Signature
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
Case = tuple[list[Array], dict[str, Any]]


def signed(arrays: list[Array], attrs: dict[str, Any], threads: int = 1) -> Signature:
    """Returns the signature with constant weights and bias."""
    return sign(CONV_TRANSPOSE, arrays, attrs, (1, 2), threads)


def check(arrays: list[Array], attrs: dict[str, Any], threads: int = 1) -> bool:
    """Checks the result against numpy's kernel; returns whether the library took the case."""
    signature = signed(arrays, attrs, threads)
    if not DECONVOLUTION.supports(signature):
        return False
    plain = sign(CONV_TRANSPOSE, arrays, attrs)
    (wanted,) = run(CONV_TRANSPOSE.kernel(plain, (NUMPY,)), plain, arrays)
    atol = 1e-5 * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1))
    same(run(DECONVOLUTION, signature, arrays)[0], wanted, rtol=1e-4, atol=atol)
    last = [np.moveaxis(arrays[0], 1, -1).copy(), *arrays[1:]]
    signature = sign(NHWC_CONV_TRANSPOSE, last, attrs, (1, 2), threads)
    assert NHWC_DECONVOLUTION.supports(signature)
    same(np.moveaxis(run(NHWC_DECONVOLUTION, signature, last)[0], -1, 1), wanted, rtol=1e-4, atol=atol)
    return True


@st.composite
def deconvolutions(draw: Any) -> Case:
    """Draws one to three dimensions, groups, output paddings, windows with and without gaps between them."""
    ndim, group = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 1, 2, 4]))
    channels, width = (draw(st.sampled_from([1, 2, 5, 8, 16, 24])) for _ in range(2))
    kernel, strides, dilations = (
        tuple(draw(st.lists(st.integers(1, most), min_size=ndim, max_size=ndim)))
        for most in (9 if ndim < 3 else 3, 4, 2)
    )
    pads = [draw(st.integers(0, (k - 1) // 2)) for k in kernel * 2]
    more = tuple(draw(st.integers(0, s - 1)) for s in strides)
    attrs = {"strides": strides, "dilations": dilations, "pads": tuple(pads), "group": group, "output_padding": more}
    sizes = draw(st.lists(st.integers(1, 7), min_size=ndim, max_size=ndim))
    shapes = [(draw(st.integers(1, 2)), group * channels, *sizes), (group * channels, width, *kernel), (group * width,)]
    return normal(draw(st.integers(0, 99)), *shapes[: draw(st.integers(2, 3))]), attrs


@settings(max_examples=30, deadline=None)
@given(deconvolutions(), st.integers(1, 3))
def test_onednn_conv_transpose_equals_numpy(case: Case, threads: int) -> None:
    check(*case, threads)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(deconvolutions(), st.integers(1, 3))
def test_onednn_conv_transpose_equals_numpy_in_many_cases(case: Case, threads: int) -> None:
    check(*case, threads)


def test_onednn_conv_transpose_adds_its_bias_once() -> None:
    arrays = normal(0, (1, 21, 16, 16), (21, 21, 32, 32), (21,))
    assert check(arrays, {"strides": (16, 16), "pads": (8, 8, 8, 8)})


def test_onednn_conv_transpose_spreads_nan_and_infinities_as_numpy() -> None:
    arrays = normal(1, (1, 16, 6, 6), (16, 24, 4, 4), (24,))
    arrays[1] = np.abs(arrays[1])
    arrays[0][0, 0, 0, 0], arrays[0][0, 3, 2, 2], arrays[0][0, 5, 4, 4] = np.nan, np.inf, -np.inf
    assert check(arrays, {"strides": (2, 2), "pads": (1, 1, 1, 1)})


def test_onednn_conv_transpose_takes_its_workspace_alone() -> None:
    arrays = normal(2, (1, 64, 28, 28), (64, 32, 4, 4), (32,))
    signature = signed(arrays, {"strides": (2, 2), "pads": (1, 1, 1, 1)})
    run_without_allocation(DECONVOLUTION, signature, arrays)
