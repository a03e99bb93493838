"""Convolutions on vars: x (N, C, spatial...), w (O, C / group, kernel...), b (O,)."""

from collections.abc import Sequence

from ops.convolution.conv import CONV
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.functional.apply import Operand, V, apply1
from ops.functional.spatial import Sizes, both_pads, each
from ops.tensor.errors import ShapeError


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
    """Correlates x with w over all spatial dimensions; y (N, O, outputs...). `pads`: one number, begins, or all."""
    n = x.spec.ndim - 2
    attrs = {"strides": each(strides, n), "pads": both_pads(pads, n), "dilations": each(dilations, n)}
    return apply1(CONV, x, w, *(() if b is None else (b,)), **attrs, group=group, auto_pad=auto_pad)


def _conv(count: int, x: V, w: Operand, b: Operand | None, options: dict[str, object]) -> V:
    if x.spec.ndim != count + 2:
        raise ShapeError(f"conv{count}d: data {x.spec} must have {count + 2} dimensions")
    return conv(x, w, b, **options)  # type: ignore[arg-type]


def conv1d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """`conv` of x (N, C, L)."""
    return _conv(1, x, w, b, options)


def conv2d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """`conv` of x (N, C, H, W)."""
    return _conv(2, x, w, b, options)


def conv3d(x: V, w: Operand, b: Operand | None = None, **options: object) -> V:
    """`conv` of x (N, C, D, H, W)."""
    return _conv(3, x, w, b, options)


def conv_transpose(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
    output_padding: Sizes = 0,
    output_shape: Sequence[int] = (),
) -> V:
    """The transpose of `conv`, w (C, O / group, kernel...): each element of x adds its multiple of w to y."""
    n = x.spec.ndim - 2
    attrs = {"strides": each(strides, n), "pads": both_pads(pads, n), "dilations": each(dilations, n)}
    more = {"output_padding": each(output_padding, n), "output_shape": tuple(output_shape)}
    return apply1(CONV_TRANSPOSE, x, w, *(() if b is None else (b,)), **attrs, **more, group=group, auto_pad=auto_pad)
