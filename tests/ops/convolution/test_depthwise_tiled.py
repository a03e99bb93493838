"""The compiled depthwise convolution on channels-last tensors against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.depthwise_tiled import DEPTHWISE_NATIVE
from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_depthwise import DEPTHWISE
from tests.helpers.ops.compiled_kernel_checks import run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign
from tests.helpers.ops.nhwc_conv_cases import (
    Case,
    case_signature,
    check_native,
    check_same_in_parts,
    draw_case,
    network_layer,
    spaced,
    spread_specials,
)


@st.composite
def depthwise(draw: Any, most_channels: int = 70) -> Case:
    """Draws depthwise convolutions with multipliers."""
    multiplier = draw(st.sampled_from([1, 1, 1, 2, 3]))
    channels = draw(st.one_of(st.integers(2, most_channels), st.sampled_from([16, 32, 48])))
    return draw_case(draw, channels, channels * multiplier, channels, (14, 5))


def check_depthwise(case: Case, parts: int, extra: int) -> None:
    check_native(DEPTHWISE_NATIVE, DEPTHWISE, case, parts, extra, close=1e-5)


@settings(max_examples=20, deadline=None)
@given(depthwise(), st.integers(1, 3), st.sampled_from([0, 0, 1, 16]))
def test_tiled_depthwise_conv_equals_numpy(case: Case, parts: int, extra: int) -> None:
    check_depthwise(case, parts, extra)


@pytest.mark.slow
@settings(max_examples=240, deadline=None)
@given(depthwise(300), st.integers(1, 5), st.integers(0, 20))
def test_tiled_depthwise_conv_equals_numpy_in_many_shapes(case: Case, parts: int, extra: int) -> None:
    check_depthwise(case, parts, extra)


@settings(max_examples=12, deadline=None)
@given(depthwise(40), st.integers(0, 99))
def test_tiled_depthwise_conv_spreads_nan_and_infinities_as_numpy(case: Case, seed: int) -> None:
    spread_specials(case[0][0], np.random.default_rng(seed), 3)
    signature = case_signature(case)
    (wanted,) = run(DEPTHWISE, signature, case[0])
    (got,) = run_native(DEPTHWISE_NATIVE, signature, spaced(case[0], 0), 1)
    same(got, wanted, 1e-5, 1e-5)


def layer(channels: int, size: int, stride: int, window: int = 3) -> Case:
    """Returns a depthwise layer of a network."""
    return network_layer(channels, size, channels, window, stride, group=channels)


@pytest.mark.parametrize(
    "case",
    [
        layer(96, 28, 2),
        layer(528, 14, 1),
        layer(100, 30, 1, 5),
        layer(24, 7, 2, 5),
        layer(40, 23, 2, 5),
        layer(40, 29, 1, 7),
    ],
)
def test_tiled_depthwise_conv_of_network_layers_equals_numpy(case: Case) -> None:
    check_depthwise(case, 2, 0)


def test_tiled_depthwise_conv_is_the_same_in_any_number_of_parts() -> None:
    check_same_in_parts(DEPTHWISE_NATIVE, layer(300, 15, 1))


def test_tiled_depthwise_conv_allocates_nothing() -> None:
    case = layer(96, 40, 1)
    run_without_allocation(DEPTHWISE_NATIVE, case_signature(case), case[0])


def test_tiled_depthwise_conv_leaves_weights_that_are_no_constant_to_numpy() -> None:
    arrays, attrs = layer(8, 5, 1)
    assert NHWC_CONV.kernel(sign(NHWC_CONV, arrays, attrs)) is DEPTHWISE
