"""Converters of Resize and of Upsample, its predecessor: output sizes and scales from inputs or attributes."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from engine.onnx.converters.elementwise import in_single
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, no_guess
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in
from ops.tensor.spec import Shape, normalize_axes

_N = TypeVar("_N", int, float)
_TEXTS = ("mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "extrapolation_value")
_FLAGS = ("exclude_outside", "antialias")


def _check_scales(shape: Shape, scales: Sequence[float]) -> None:
    if len(scales) != len(shape):
        raise ModelError(f"{len(scales)} scales for a tensor of {len(shape)} dimensions")
    if not all(math.isfinite(s) and s > 0 for s in scales):
        raise ModelError(f"scales {tuple(scales)} are not all positive numbers")


def _upsampled(node: Node, scales: Sequence[float]) -> tuple[Value, ...]:
    """Converts Upsample, and Resize of opset 10: asymmetric coordinates, rounded down to enlarge and up to reduce."""
    x = node.value(0)
    _check_scales(x.shape, scales)
    if all(s >= 1 for s in scales):
        return node.last("resize", x, **_asymmetric(node, scales, "floor"))
    if any(s > 1 for s in scales):
        x = node.step("resize", x, **_asymmetric(node, [max(s, 1.0) for s in scales], "floor"))
    return node.last("resize", x, **_asymmetric(node, [min(s, 1.0) for s in scales], "ceil"))


def _asymmetric(node: Node, scales: Sequence[float], rounding: str) -> dict[str, Any]:
    return {
        "scales": tuple(scales),
        "mode": node.attr("mode", "nearest"),
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": rounding,
    }


def _upsample_attribute(node: Node) -> tuple[Value, ...]:
    return _upsampled(node, node.attr("scales"))


def _upsample_input(node: Node) -> tuple[Value, ...]:
    return _upsampled(node, _numbers(node, 1, "scales"))


def _resize(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    axes = normalize_axes(node.attr("axes", range(len(x.shape))), len(x.shape))
    sizes, scales = _target(node, x.shape, axes)
    attrs: dict[str, Any] = node.present(*_TEXTS, *_FLAGS)
    if attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        attrs["roi"] = _full_roi(_numbers(node, 1, "roi"), axes, len(x.shape))
    return node.last("resize", x, sizes=sizes, scales=scales, **attrs)


def _target(node: Node, shape: Shape, axes: Sequence[int]) -> tuple[Shape, tuple[float, ...]]:
    """Returns sizes and scales of all axes, from those of some. One of the two may be (): it follows from the other."""
    scales = _numbers(node, 2, "scales")
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    sizes = node.optional_integers(3, "sizes", no_guess if policy == "stretch" else None) or ()
    if bool(scales) == bool(sizes):
        raise ModelError("either scales or sizes must be given")
    if scales:
        full = _spread(scales, axes, [1.0] * len(shape))
        _check_scales(shape, full)
        return (), tuple(full)
    full_sizes = tuple(_spread(sizes, axes, shape))
    if not dims_in(shape) and 0 in shape:
        raise ModelError(f"sizes cannot be asked of the empty shape {shape}")
    if policy == "stretch":
        return full_sizes, ()
    if dims_in((shape, full_sizes)):
        raise node.refuse(f"sizes that keep the aspect ratio ({policy}) need lengths that are known; give shapes=")
    ratio = {"not_larger": min, "not_smaller": max}[policy](full_sizes[a] / shape[a] for a in axes)
    kept = _spread([ratio] * len(axes), axes, [1.0] * len(shape))
    return tuple(math.floor(n * r + 0.5) for n, r in zip(shape, kept, strict=True)), tuple(kept)


def _spread(values: Sequence[_N], axes: Sequence[int], rest: Sequence[_N]) -> list[_N]:
    """Returns `values` on `axes`, and `rest` on the others."""
    if len(values) != len(axes):
        raise ModelError(f"{len(values)} scales or sizes for {len(axes)} axes")
    full = list(rest)
    for axis, value in zip(axes, values, strict=True):
        full[axis] = value
    return full


def _full_roi(roi: Sequence[float], axes: Sequence[int], rank: int) -> tuple[float, ...]:
    starts = _spread(roi[: len(axes)], axes, [0.0] * rank)
    return (*starts, *_spread(roi[len(axes) :], axes, [1.0] * rank))


def _numbers(node: Node, index: int, role: str) -> tuple[float, ...]:
    """Returns a constant input as plain numbers; () where it is left out."""
    return () if node.optional(index) is None else node.numbers(index, role)


def _grid_sample(node: Node) -> tuple[Value, ...]:
    attrs = {"padding_mode": node.attr("padding_mode", "zeros"), "align_corners": node.attr("align_corners", 0)}
    mode = node.attr("mode", "linear").removeprefix("bi")  # operator set 16 says "bilinear" and "bicubic"
    return in_single(node, "grid_sample", node.operands(), mode=mode, **attrs)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Upsample": ((7, _upsample_attribute), (9, _upsample_input), (10, None)),
        "Resize": ((10, _upsample_input), (11, _resize)),
        "GridSample": ((16, _grid_sample),),
    }
)
