"""Images from their blocks, against sums block by block."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.onnx.load import load_onnx
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_ours, value


def _model(shape: tuple[int | str, ...], image: tuple[int, ...], block: tuple[int, ...], **attrs: Any) -> Any:
    sizes = {"i": np.array(image, np.int64), "b": np.array(block, np.int64)}
    return model([node("Col2Im", ["x", "i", "b"], **attrs)], [value("x", shape)], initializers=sizes, opset=18)


def _summed(x: Array, image: tuple[int, ...], block: tuple[int, ...], places: list[range], dilation: int) -> Array:
    """Adds each element of each block to the element of the padded image that it comes from; pads are 1."""
    y = np.zeros((*x.shape[:1], x.shape[1] // int(np.prod(block)), *(n + 2 for n in image)))
    rows = x.reshape(*y.shape[:2], -1, x.shape[2])
    for j, corner in enumerate(product(*places)):
        for i, tap in enumerate(product(*map(range, block))):
            at: Any = tuple(c + t * dilation for c, t in zip(corner, tap, strict=True))
            y[(slice(None), slice(None), *at)] += rows[:, :, i, j]
    return y[(slice(None), slice(None), *(slice(1, -1) for _ in image))]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.data())
def test_blocks_are_added_up(axes: int, stride: int, dilation: int, data: st.DataObject) -> None:
    image = tuple(data.draw(st.integers(1, 6)) for _ in range(axes))
    block = tuple(data.draw(st.integers(1, 3)) for _ in range(axes))
    reach = [dilation * (b - 1) for b in block]
    places = [range(0, n + 2 - r, stride) for n, r in zip(image, reach, strict=True)]
    assume(all(map(len, places)))
    shape = (2, 2 * int(np.prod(block)), int(np.prod([len(p) for p in places])))
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    attrs = {"strides": [stride] * axes, "dilations": [dilation] * axes, "pads": [1] * 2 * axes}
    (y,) = run_ours(_model(shape, image, block, **attrs), {"x": x})
    assert y.shape == (2, 2, *image)
    assert np.allclose(y, _summed(x, image, block, places, dilation), atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1, 5, 9), "are no columns of shape"), ((1, 4, 8), "8 blocks are given, .* has 3 x 3"), ((4, 9), "no columns")],
)
def test_columns_that_do_not_fit_are_refused(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_onnx(_model(shape, (4, 4), (2, 2)))


def test_blocks_whose_weights_would_be_huge_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="blocks of 12000 elements need weights of more than"):
        load_onnx(_model((1, 12_000, 1), (1, 12_000), (1, 12_000)))
