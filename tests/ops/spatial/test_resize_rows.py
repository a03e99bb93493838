"""Some rows of a resize, of those rows of x alone that they read."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.common.tiling import ROWS
from ops.schema.schema import Stripe, evaluate
from ops.spatial.resize import RESIZE
from ops.spatial.resize_tables import COORDINATES, NEAREST
from ops.tensor.errors import AttributeValueError
from ops.tensor.spec import Array, TensorSpec

_FLOAT = np.dtype("float32")


def _rows(x: Array, attrs: dict[str, Any], first: int, last: int) -> Stripe:
    stripe = RESIZE.rows(RESIZE.sign([TensorSpec(x.shape, x.dtype)], attrs), first, last, ROWS)
    assert stripe is not None
    return stripe


@st.composite
def _resized(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any]]:
    shape = (1, draw(st.integers(2, 12)), draw(st.integers(1, 5)), 3)
    longer = draw(st.sampled_from([1, 2, 3, 4]))
    rows = shape[1] * longer if draw(st.booleans()) else draw(st.integers(2, 40))
    ends = draw(st.sampled_from([(0.0, 1.0), (0.2, 1.4)]))
    return shape, {
        "sizes": (1, rows, draw(st.integers(1, 9)), 3),
        "mode": draw(st.sampled_from(["nearest", "linear", "cubic"])),
        "coordinate_transformation_mode": draw(st.sampled_from(sorted(COORDINATES))),
        "nearest_mode": draw(st.sampled_from(sorted(NEAREST))),
        "antialias": draw(st.booleans()),
        "exclude_outside": draw(st.booleans()),
        "extrapolation_value": 7.0,
        "roi": (0.0, ends[0], 0.0, 0.0, 1.0, ends[1], 1.0, 1.0),
    }


@settings(max_examples=60)
@given(_resized(), st.data())
def test_some_rows_are_those_of_the_whole_to_the_bit(case: tuple[tuple[int, ...], Any], data: st.DataObject) -> None:
    shape, attrs = case
    x = np.random.default_rng(0).standard_normal(shape, _FLOAT)
    (whole,) = evaluate(RESIZE, x, **attrs)
    for _ in range(2):  # of some rows, some rows again
        first = data.draw(st.integers(0, whole.shape[1] - 1))
        stripe = _rows(x, attrs, first, data.draw(st.integers(first + 1, whole.shape[1])))
        x, attrs, whole = x[stripe.inputs[0]], dict(stripe.attrs), whole[stripe.output]
        np.testing.assert_array_equal(evaluate(RESIZE, x, **attrs)[0], whole)


@pytest.mark.parametrize(("mode", "alike"), [("half_pixel", True), ("align_corners", False)])
def test_rows_far_from_the_border_that_are_weighed_alike_are_called_alike(mode: str, alike: bool) -> None:
    x = np.zeros((1, 64, 2, 3), _FLOAT)
    attrs = {"sizes": (1, 128, 4, 3), "mode": "linear", "coordinate_transformation_mode": mode}
    one, other = _rows(x, attrs, 8, 12), _rows(x, attrs, 40, 44)
    assert (one.inputs[0][1].start, one.inputs[0][1].stop) == (3, 7)
    assert (one.attrs == other.attrs) is alike


@pytest.mark.parametrize(
    "rows", [(4, 8), (8, 16, 0, 6), (8, 16, 5, 0), (8, 16, -1, 0), (8, 16, 0, 10), (3, 16, 0, 0), (8, 16, 0, -1)]
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_numbers_that_are_no_rows_are_refused(rows: tuple[int, ...], mode: str) -> None:
    with pytest.raises(AttributeValueError, match="rows"):
        RESIZE.sign([TensorSpec((1, 4, 4, 3), _FLOAT)], {"sizes": (1, 8, 8, 3), "rows": rows, "mode": mode})
