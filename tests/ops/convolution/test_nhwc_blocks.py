"""Blocks of convolutions: each output is in one block, with the inputs that it reads, and copies fit their buffer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_blocks import Blocks
from ops.convolution.nhwc_shapes import case_of
from ops.convolution.rows import MOST_BYTES, ROWS
from ops.convolution.shapes import ConvCase
from ops.tensor.spec import TensorSpec

FLOAT = np.dtype("float32")


def case(batch: int, sizes: tuple[int, ...], window: int, stride: int, pad: int) -> ConvCase:
    """Returns a case of three channels, with one stride, pad and window length for all dimensions."""
    x, w = TensorSpec((batch, *sizes, 3), FLOAT), TensorSpec((4, 3, *(window,) * len(sizes)), FLOAT)
    attrs = {"strides": (stride,) * len(sizes), "pads": (pad,) * 2 * len(sizes)}
    return case_of(NHWC_CONV.sign([x, w], attrs))


cases = st.builds(
    case,
    st.integers(0, 5),
    st.lists(st.integers(4, 12), min_size=1, max_size=3).map(tuple),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 6),
)


@settings(max_examples=40, deadline=None)
@given(cases, st.integers(0, 5000))
def test_convolution_blocks_are_all_outputs_with_the_inputs_they_read(conv: ConvCase, most: int) -> None:
    w = conv.windows
    times = np.zeros((conv.batch, w.outputs[0]), np.int64)
    lines = np.arange(w.sizes[0])
    for block in Blocks(conv, most):
        times[block.images, block.outputs] += 1
        here, read = block.case.windows, lines[block.inputs]
        assert block.case.batch == len(range(*block.images.indices(conv.batch)))
        for o in range(here.outputs[0]):
            for tap in range(w.kernel[0]):
                wanted = (block.outputs.start + o) * w.strides[0] - w.begins[0] + tap
                got = o * w.strides[0] - here.begins[0] + tap
                assert (0 <= got < here.sizes[0]) == (0 <= wanted < w.sizes[0])
                assert not 0 <= got < here.sizes[0] or read[got] == wanted
    assert (times == 1).all()


@settings(max_examples=40, deadline=None)
@given(cases, st.integers(0, 5000))
def test_copies_have_as_many_bytes_as_given_or_are_of_one_line(conv: ConvCase, most: int) -> None:
    blocks = Blocks(conv, most)
    assert 4 * np.prod(blocks.padded) <= most or (blocks.lines == 1 and blocks.images <= 1)
    for block in blocks:
        assert block.case.batch <= blocks.images
        assert block.case.windows.outputs[0] <= blocks.lines


@settings(max_examples=80, deadline=None)
@given(cases, st.integers(0, 5000))
def test_one_of_a_few_blocks_reads_as_many_lines_as_any(conv: ConvCase, most: int) -> None:
    blocks = Blocks(conv, most)
    lines = max((b.case.windows.sizes[0] for b in blocks if b.images.start == 0), default=0)
    assert max((b.case.windows.sizes[0] for b in blocks.largest()), default=0) == lines or not conv.batch


@pytest.mark.parametrize(("size", "window", "stride"), [(224, 7, 2), (224, 3, 1), (2000, 3, 2)])
def test_convolution_blocks_of_an_image_need_little_workspace(size: int, window: int, stride: int) -> None:
    x, w = TensorSpec((1, size, size, 3), FLOAT), TensorSpec((64, 3, window, window), FLOAT)
    signature = NHWC_CONV.sign([x, w], {"strides": (stride, stride)}, frozenset({1}))
    assert NHWC_CONV.kernel(signature) is ROWS
    assert ROWS.workspace(signature) <= MOST_BYTES


def test_small_images_are_copied_several_at_a_time() -> None:
    blocks = Blocks(case(64, (28, 28), 3, 1, 1), MOST_BYTES)
    assert blocks.images > 10
    assert len(list(blocks)) == -(-64 // blocks.images)
