"""Resizing against onnxruntime, and what its kernels must keep."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.spatial.resize import RESIZE
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_resize
from tests.helpers.ops.kernel_checks import check_no_allocation, check_results, check_strides, sign
from tests.helpers.ops.sample_arrays import normal

MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


@st.composite
def resized(draw: Any) -> tuple[Array, dict[str, Any]]:
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(2, 6)), draw(st.integers(2, 6)))
    sizes = (*shape[:2], draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    attrs: dict[str, Any] = {"sizes": sizes, "mode": mode}
    attrs["coordinate_transformation_mode"] = draw(st.sampled_from(MODES))
    if mode == "nearest":
        attrs["nearest_mode"] = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attrs["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5]))
        attrs["exclude_outside"] = draw(st.integers(0, 1))
    return normal(draw(st.integers(0, 99)), shape)[0], attrs


def _on_a_border(x: Array, attrs: dict[str, Any]) -> bool:
    """Returns whether float32, in which onnxruntime computes places, may round to another nearest element."""
    if attrs["mode"] != "nearest":
        return False
    wanted = attrs["sizes"]
    ends = [(n, m) for n, m in zip(x.shape, wanted, strict=True) if n != m]
    return any(m % n for n, m in ends)


@settings(max_examples=60)
@given(resized())
def test_resize_equals_onnxruntime(case: tuple[Array, dict[str, Any]]) -> None:
    x, attrs = case
    if _on_a_border(x, attrs):
        attrs["mode"] = "linear"
    check_results(RESIZE, [x], [onnxruntime_resize(x, **attrs)], rtol=1e-3, atol=1e-3, **attrs)


@settings(max_examples=20)
@given(st.sampled_from(["linear", "cubic"]), st.integers(2, 9), st.integers(2, 9), st.booleans())
def test_antialiased_resize_equals_onnxruntime(mode: str, height: int, width: int, exclude: bool) -> None:
    (x,) = normal(height, (1, 2, 8, 9))
    attrs: dict[str, Any] = {"sizes": (1, 2, height, width), "mode": mode, "antialias": 1}
    attrs["exclude_outside"] = 1  # without it onnxruntime and the definition differ at the borders
    if exclude:
        attrs["coordinate_transformation_mode"] = "pytorch_half_pixel"
    check_results(RESIZE, [x], [onnxruntime_resize(x, **attrs)], rtol=1e-3, atol=1e-3, **attrs)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "bool"])
def test_nearest_takes_every_type_and_any_strides(dtype: str) -> None:
    x = np.arange(24).reshape((1, 2, 3, 4)).astype(dtype)
    attrs: dict[str, Any] = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    for factors in ((2, 3), (1, 2)):
        wanted = x.repeat(factors[0], axis=2).repeat(factors[1], axis=3)
        check_results(RESIZE, [x], [wanted], sizes=wanted.shape, **attrs)
        check_strides(RESIZE, [x], sizes=wanted.shape, **attrs)
    shifted = x[:, :, :, [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]]
    check_results(RESIZE, [x], [shifted], sizes=shifted.shape, coordinate_transformation_mode="asymmetric")
    check_strides(RESIZE, [x], sizes=(1, 2, 5, 3))


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int32"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation_in_other_types_agrees_with_float32(dtype: str, mode: str) -> None:
    x = np.random.default_rng(1).integers(20, 90, (1, 2, 5, 6)).astype(dtype)
    (wide,) = [onnxruntime_resize(x.astype("float32"), sizes=(1, 2, 8, 4), mode=mode)]
    close = 1 if np.dtype(dtype).kind in "iu" else 0.1
    check_results(RESIZE, [x], [wide.astype(dtype)], atol=close, sizes=(1, 2, 8, 4), mode=mode)


def test_resize_of_three_trailing_axes() -> None:
    (x,) = normal(3, (2, 3, 4, 5, 6))
    attrs: dict[str, Any] = {"sizes": (2, 3, 6, 3, 9), "mode": "linear"}
    check_results(RESIZE, [x], [onnxruntime_resize(x, **attrs)], rtol=1e-4, atol=1e-4, **attrs)
    check_strides(RESIZE, [x], **attrs)


def test_resize_extrapolates_outside_the_crop() -> None:
    x = np.arange(4, dtype="float32").reshape((1, 1, 4))
    attrs: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
    roi = (0, 0, -1 / 3, 1, 1, 4 / 3)
    wanted = np.array([[[9, 0, 1, 2, 3, 9]]], "float32")
    check_results(RESIZE, [x], [wanted], atol=1e-6, sizes=(1, 1, 6), roi=roi, extrapolation_value=9, **attrs)


@pytest.mark.parametrize("attrs", [{"mode": "linear"}, {"mode": "cubic"}, {"mode": "linear", "antialias": True}, {}])
def test_resize_of_large_images_needs_little_workspace_and_allocates_nothing(attrs: dict[str, Any]) -> None:
    (x,) = normal(4, (1, 24, 160, 160))
    attrs = {**attrs, "sizes": (1, 24, 200, 130)}
    check_no_allocation(RESIZE, [x], scratch_limit=128 << 10, **attrs)
    signature = sign(RESIZE, [x], attrs)
    assert RESIZE.kernel(signature).workspace(signature) < x.nbytes / 8


def test_resize_to_the_same_size_changes_nothing() -> None:
    (x,) = normal(5, (2, 3, 4, 5))
    check_results(RESIZE, [x], [x], sizes=x.shape, mode="cubic")
    check_results(RESIZE, [x[:0]], [x[:0]], sizes=(0, 3, 4, 5), mode="linear")
    check_strides(RESIZE, [x], sizes=x.shape, mode="linear")


def test_resize_refuses_shapes_that_do_not_fit_with_their_numbers() -> None:
    x = TensorSpec((1, 2, 4, 4), np.dtype("float32"))
    with pytest.raises(AttributeValueError, match="one size for each dimension"):
        RESIZE.sign((x,), {"sizes": (4, 4)})
    with pytest.raises(AttributeValueError, match="one positive number"):
        RESIZE.sign((x,), {"sizes": (1, 2, 8, 8), "scales": (1.0, 1.0, 0.0, 2.0)})
    with pytest.raises(AttributeValueError, match="needs a roi"):
        RESIZE.sign((x,), {"sizes": (1, 2, 8, 8), "coordinate_transformation_mode": "tf_crop_and_resize"})
    with pytest.raises(DtypeError, match="bool"):
        RESIZE.sign((x.with_dtype("bool"),), {"sizes": (1, 2, 8, 8), "mode": "linear"})
