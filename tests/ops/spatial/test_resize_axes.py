"""The rules for long axes of a resize, against the tables of short ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.schema.schema import Signature, evaluate
from ops.spatial import resize_axes
from ops.spatial.resize import RESIZE, RESIZE_GRADIENT
from ops.spatial.resize_axes import changed_axes, repeats, table_of
from ops.spatial.resize_tables import COORDINATES, NEAREST, is_copy, is_repetition
from ops.tensor.spec import TensorSpec


@st.composite
def resized(draw: Any) -> Signature:
    """Draws a resize of one axis: enlarged by whole numbers, by others, or left as it is."""
    length = draw(st.integers(1, 70))
    attrs: dict[str, Any] = {
        "mode": draw(st.sampled_from(["nearest", "linear", "cubic"])),
        "coordinate_transformation_mode": draw(st.sampled_from(sorted(COORDINATES))),
        "nearest_mode": draw(st.sampled_from(sorted(NEAREST))),
        "roi": draw(st.sampled_from([(0.0, 1.0), (0.25, 0.75)])),
        "antialias": draw(st.booleans()),
    }
    if draw(st.booleans()):
        attrs["scales"] = (draw(st.sampled_from([1.0, 2.0, 3.0, 1.01, 0.5, 0.999])),)
    else:
        attrs["sizes"] = (length * draw(st.integers(1, 7)) if draw(st.booleans()) else draw(st.integers(1, 140)),)
    return RESIZE.sign((TensorSpec((length,), np.dtype("float32")),), attrs)


def as_long(signature: Signature, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, int]], bool]:
    """Returns what the rules for long axes say."""
    with monkeypatch.context() as patch:
        patch.setattr(resize_axes, "_LONG", 0)
        return changed_axes(signature), repeats(signature)


@settings(max_examples=160)
@given(resized())
def test_rules_for_long_axes_never_take_a_change_for_a_copy(signature: Signature) -> None:
    with pytest.MonkeyPatch.context() as patch:
        changed, is_repeated = as_long(signature, patch)
    mapping = table_of(signature, 0)
    if not changed:
        assert is_copy(mapping, signature.x.shape[0])
    else:
        assert changed == [(0, len(mapping.indices))]
    if is_repeated:
        assert is_repetition(mapping, signature.y.shape[0] // signature.x.shape[0])


@pytest.mark.parametrize("times", [1, 2, 3, 1000])
@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"])
def test_a_long_axis_of_repeated_elements_is_a_repetition(mode: str, times: int) -> None:
    x = TensorSpec((2**20,), np.dtype("float32"))
    assert repeats(RESIZE.sign((x,), {"sizes": (times * 2**20,), "coordinate_transformation_mode": mode}))


@pytest.mark.parametrize("times", [2, 3, 7, 1000])
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil"])
def test_places_far_along_an_axis_round_to_the_element_that_is_repeated(nearest: str, times: int) -> None:
    last = (2**48 - 1) // times * times
    o = np.arange(last - 10_000, last, dtype=np.float64)
    places = (o + 0.5) / float(times) - 0.5
    np.testing.assert_array_equal(NEAREST[nearest](places), np.arange(last - 10_000, last) // times)


def test_the_gradient_along_a_long_axis_has_room_for_products() -> None:
    x, dy = TensorSpec((2**20,), np.dtype("float32")), TensorSpec((2**21,), np.dtype("float32"))
    signature = RESIZE_GRADIENT.sign((dy,), {"shape": x.shape, "sizes": dy.shape, "mode": "linear"})
    assert changed_axes(signature) == [(0, 2)]
    assert not changed_axes(RESIZE_GRADIENT.sign((x,), {"shape": x.shape, "sizes": x.shape}))


@pytest.mark.parametrize("end", [float("nan"), float("inf"), 1e300])
def test_places_that_are_no_numbers_are_outside_of_the_tensor(end: float) -> None:
    x = np.arange(3, dtype=np.float32)
    attrs = {"sizes": (4,), "roi": (0.0, end), "coordinate_transformation_mode": "tf_crop_and_resize"}
    (y,) = evaluate(RESIZE, x, **attrs, extrapolation_value=7.0)
    assert y[0] == 0 and set(y[1:].tolist()) <= {0.0, 7.0}


@pytest.mark.parametrize("scale", [float("inf"), float("nan"), -1.0])
def test_scales_that_are_no_finite_positive_numbers_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        RESIZE.sign((TensorSpec((3,), np.dtype("float32")),), {"scales": (scale,)})
