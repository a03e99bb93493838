"""Convolution of many small images: what the kernel for any convolution gives, in groups of images of any size."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution import images as conv_images
from ops.convolution.conv import CONV
from ops.convolution.gemm import COLUMNS
from ops.convolution.images import IMAGES
from tests.helpers.ops.kernel_checks import check_no_allocation, run, same, sign
from tests.helpers.ops.layer_gradient_checks import floats
from tests.helpers.ops.window_cases import conv_cases


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 7), st.integers(1, 3), st.integers(1, 3), conv_cases(), st.integers(1, 400))
def test_conv_of_grouped_images_equals_conv_of_single_images(
    batch: int, channels: int, filters: int, case: tuple[Any, ...], together: int
) -> None:
    sizes, kernel, strides, pads, dilations, group = case
    attrs = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    shapes = (batch, group * channels, *sizes), (group * filters, channels, *kernel), (group * filters,)
    arrays = floats(1, *shapes)
    signature = sign(CONV, arrays, attrs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conv_images, "_BATCHED_PIXELS", together)
        if IMAGES.supports(signature):
            same(run(IMAGES, signature, arrays)[0], run(COLUMNS, signature, arrays)[0], 1e-9, 1e-9)


def test_images_that_are_large_or_alone_are_not_put_side_by_side() -> None:
    for batch, side, taken in ((8, 8, True), (1, 8, False), (8, 9, False)):
        x, w = floats(0, (batch, 4, side, side), (4, 4, 3, 3), dtype="float32")
        signature = sign(CONV, [x, w], {"pads": (1, 1, 1, 1)})
        assert (CONV.kernel(signature) is IMAGES) == taken


def test_conv_of_grouped_images_allocates_nothing() -> None:
    arrays = floats(2, (40, 16, 8, 8), (16, 16, 3, 3), (16,), dtype="float32")
    check_no_allocation(CONV, arrays, pads=(1, 1, 1, 1))
