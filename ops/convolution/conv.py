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


def _conv(count: int, x: V, w: Operand, b: Operand | None, options: dict[str, object]) -> V:
    if x.spec.ndim != count + 2:
        raise ShapeError(f"conv{count}d: data {x.spec} must have {count + 2} dimensions")
    return conv(x, w, b, **options)  # type: ignore[arg-type]


def conv1d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """Returns `conv` of x (N, C, L)."""
    return _conv(1, x, w, b, options)


def conv2d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """Returns `conv` of x (N, C, H, W)."""
    return _conv(2, x, w, b, options)


def conv3d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """Returns `conv` of x (N, C, D, H, W)."""
    return _conv(3, x, w, b, options)
