"""The compiled resize against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.spatial.resize import RESIZE
from ops.spatial.resize_compiled import RESIZE_NATIVE
from ops.spatial.resize_passes import INTERPOLATE
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign

Case = tuple[Array, dict[str, Any]]


@st.composite
def resizes(draw: Any) -> Case:
    """Draws one or two axes of up to four; all modes and coordinates, parts of a tensor, NaN and infinities."""
    ndim = draw(st.integers(2, 4))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim)))
    axes = draw(st.sets(st.integers(0, ndim - 1), min_size=1, max_size=2))
    sizes = tuple(draw(st.integers(0 if n == 1 else 1, 14)) if a in axes else n for a, n in enumerate(shape))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    coordinates = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize"]
    attrs: dict[str, Any] = {"sizes": sizes, "mode": mode, "extrapolation_value": 7.5}
    attrs |= {"coordinate_transformation_mode": draw(st.sampled_from(coordinates))}
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        attrs["roi"] = tuple(-0.2 if a in axes else 0.0 for a in range(ndim)) + (1.0,) * ndim
    elif mode != "nearest":
        attrs |= {"antialias": draw(st.booleans()), "exclude_outside": draw(st.booleans())}
    x = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(shape).astype(np.float32)
    if draw(st.integers(0, 3)) == 0:
        x.flat[draw(st.integers(0, x.size - 1))] = draw(st.sampled_from([np.nan, np.inf]))
    return x, attrs


def check_resize(case: Case, parts: int, extra: int) -> bool:
    """Checks the compiled kernel against numpy's; returns whether it takes the case."""
    signature = sign(RESIZE, [case[0]], case[1])
    if not RESIZE_NATIVE.supports(signature):
        return False
    (wanted,) = run(INTERPOLATE, signature, [case[0]])
    (got,) = run_native(RESIZE_NATIVE, signature, [placed(case[0], extra)], parts, extra)
    same(got, wanted, 1e-5, 2e-5)
    return True


@settings(max_examples=40, deadline=None)
@given(resizes(), st.integers(1, 3), st.sampled_from([0, 0, 3]))
def test_compiled_resize_equals_numpy(case: Case, parts: int, extra: int) -> None:
    check_resize(case, parts, extra)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(resizes(), st.integers(1, 5), st.integers(0, 5))
def test_compiled_resize_equals_numpy_in_many_shapes(case: Case, parts: int, extra: int) -> None:
    check_resize(case, parts, extra)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(1, 20, 14, 32), (1, 7, 13, 32), (1, 10, 10, 32)])
def test_compiled_resize_of_channels_last_images(mode: str, sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((1, 10, 9, 32)).astype(np.float32)
    assert check_resize((x, {"sizes": sizes, "mode": mode}), 2, 16)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_compiled_resize_of_channels_first_images(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 10, 9)).astype(np.float32)
    assert check_resize((x, {"sizes": (2, 5, 17, 31), "mode": mode}), 2, 0)


def test_compiled_resize_allocates_nothing() -> None:
    x = np.ones((1, 30, 30, 64), np.float32)
    signature = sign(RESIZE, [x], {"sizes": (1, 45, 50, 64), "mode": "linear"})
    assert RESIZE.kernel(signature) is RESIZE_NATIVE
    run_without_allocation(RESIZE_NATIVE, signature, [x])
