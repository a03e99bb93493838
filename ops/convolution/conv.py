"""Convolution over 1, 2, 3 or more spatial dimensions (ONNX Conv-22)."""

from ops.common.apply import Operand, V, apply1
from ops.common.tiling import conv_stripes
from ops.common.windows import CONV_ATTRIBUTES, Sizes, spatial_attributes
from ops.convolution.depthwise import DEPTHWISE
from ops.convolution.gemm import COLUMNS, POINTWISE
from ops.convolution.gradient import conv_gradient
from ops.convolution.images import IMAGES
from ops.convolution.packed import PACKED
from ops.convolution.shapes import conv_cost, infer_conv
from ops.schema.schema import OpSchema
from ops.tensor.errors import ShapeError

CONV = OpSchema(
    name="conv",
    summary="y[n, o] = b[o] + sum over channels c of x[n, c] correlated with w[o, c]; x (N, C, spatial...).",
    infer=infer_conv,
    kernels=(PACKED, POINTWISE, DEPTHWISE, IMAGES, COLUMNS),
    arity=(2, 3),
    attributes=CONV_ATTRIBUTES,
    cost=conv_cost,
    gradient=conv_gradient,
    stripes=conv_stripes,
)
OPS = (CONV,)


def conv(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> V:
    """Correlates x with w over all spatial dimensions; returns y (N, O, outputs...).

    x is (N, C, spatial...), w (O, C / group, kernel...), b (O,). `pads`: one number, begins, or begins and ends.
    """
    attrs = spatial_attributes(x.spec, strides, pads, dilations)
    return apply1(CONV, x, w, *(() if b is None else (b,)), **attrs, group=group, auto_pad=auto_pad)


def _require_spatial(count: int, x: V) -> None:
    if x.spec.ndim != count + 2:
        raise ShapeError(f"conv{count}d: data {x.spec} must have {count + 2} dimensions")


def conv1d(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> V:
    """Returns `conv` of x (N, C, L), w (O, C / group, l of the kernel). Raises ShapeError for another x."""
    _require_spatial(1, x)
    return conv(x, w, b, strides=strides, pads=pads, dilations=dilations, group=group, auto_pad=auto_pad)


def conv2d(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> V:
    """Returns `conv` of x (N, C, H, W), w (O, C / group, h, w of the kernel). Raises ShapeError for another x."""
    _require_spatial(2, x)
    return conv(x, w, b, strides=strides, pads=pads, dilations=dilations, group=group, auto_pad=auto_pad)


def conv3d(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> V:
    """Returns `conv` of x (N, C, D, H, W), w (O, C / group, d, h, w of the kernel). Raises ShapeError for another x."""
    _require_spatial(3, x)
    return conv(x, w, b, strides=strides, pads=pads, dilations=dilations, group=group, auto_pad=auto_pad)
