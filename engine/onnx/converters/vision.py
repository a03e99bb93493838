"""Converters of operators of detection and of their kind: regions of images, unpooling, deformable convolutions."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from engine.onnx.converters.elementwise import cast_to, in_single, widened
from engine.onnx.converters.nn import check_kernel
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in


def _roi_align(node: Node) -> tuple[Value, ...]:
    mode = node.attr("coordinate_transformation_mode", "half_pixel")
    if mode not in ("half_pixel", "output_half_pixel"):
        raise ModelError(f"coordinate_transformation_mode is {mode!r}; half_pixel or output_half_pixel is wanted")
    return _aligned(node, half_pixel=mode == "half_pixel")


def _roi_align_unshifted(node: Node) -> tuple[Value, ...]:
    """Converts RoiAlign before opset 16, which does not move coordinates by half an element."""
    return _aligned(node, half_pixel=False)


def _aligned(node: Node, *, half_pixel: bool) -> tuple[Value, ...]:
    attrs = node.present("output_height", "output_width", "sampling_ratio", "spatial_scale")
    mode = node.attr("mode", "avg").lower()
    return in_single(node, "roi_align", node.operands(), **attrs, mode=mode, half_pixel=half_pixel)


def _max_roi_pool(node: Node) -> tuple[Value, ...]:
    scale = node.attr("spatial_scale", 1.0)
    return in_single(node, "max_roi_pool", node.operands(), pooled_shape=node.attr("pooled_shape"), spatial_scale=scale)


def _max_unpool(node: Node) -> tuple[Value, ...]:
    """Converts MaxUnpool: places count the elements of the shape that follows from the windows, in C order.

    A larger output_shape adds zeros behind them.
    """
    x, places = node.value(0), node.value(1)
    shape = _unpooled(node, x)
    zeros = node.step("expand", node.like(0, x), shape=(math.prod(shape),))
    flat = (node.step("reshape", value, shape=(-1,)) for value in (places, x))
    written = node.step("scatter_elements", zeros, *flat, axis=0)
    if node.optional(2) is None:
        return node.last("reshape", written, shape=shape)
    wanted = node.integers(2, "output_shape")
    if len(wanted) != len(shape):
        raise ModelError(f"output_shape {wanted} for a tensor of {len(shape)} dimensions")
    behind = tuple(m - n for m, n in zip(wanted, shape, strict=True))
    if not dims_in(behind) and min(behind) < 0:
        raise ModelError(f"output_shape {wanted} is smaller than {shape}, which follows from the windows")
    return node.last("pad", node.step("reshape", written, shape=shape), pads=(*(0 for _ in shape), *behind))


def _unpooled(node: Node, x: Value) -> tuple[int, ...]:
    """Returns the shape of what was pooled to x, as far as the windows tell."""
    kernel = tuple(node.attr("kernel_shape"))
    axes = len(kernel)
    strides, pads = node.attr("strides", (1,) * axes), node.attr("pads", (0,) * 2 * axes)
    if (len(x.shape), len(strides), len(pads)) != (axes + 2, axes, 2 * axes) or min((*kernel, *strides, 1)) < 1:
        raise ModelError(f"kernel_shape {kernel}, strides {tuple(strides)} and pads {tuple(pads)} for shape {x.shape}")
    around = zip(x.shape[2:], kernel, strides, pads[:axes], pads[axes:], strict=True)
    return (*x.shape[:2], *((n - 1) * s + k - begin - end for n, k, s, begin, end in around))


def _deform_conv(node: Node) -> tuple[Value, ...]:
    """Converts DeformConv: the elements of all windows, then a convolution of one tap."""
    check_kernel(node, 1)
    x, weights, offset = (node.value(i) for i in range(3))
    bias, mask = node.optional(3), node.optional(4)
    moved = (x, offset) if mask is None else (x, offset, mask)
    attrs = node.present("strides", "pads", "dilations", "offset_group")
    if len(x.shape) != 4 or len(weights.shape) != 4:
        raise node.refuse(f"only images (N, C, H, W) are supported, not {x.shape} with weights {weights.shape}")
    wide = node.step("deformed_windows", *widened(node, moved), kernel_shape=weights.shape[2:], **attrs)
    read = cast_to(node, wide, x.dtype)
    taps = node.step("reshape", weights, shape=(weights.shape[0], math.prod(weights.shape[1:]), 1, 1))
    more = () if bias is None else (bias,)
    return node.last("conv", read, taps, *more, group=node.attr("group", 1))


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "RoiAlign": ((10, _roi_align_unshifted), (16, _roi_align)),
        "MaxRoiPool": ((1, _max_roi_pool),),
        "MaxUnpool": ((9, _max_unpool),),
        "DeformConv": ((19, _deform_conv),),
    }
)
