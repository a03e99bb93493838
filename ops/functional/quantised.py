"""Functions on vars that quantise, and layers that compute with quantised tensors.

Where a scale or zero point is a plain number, it becomes one of float32, or of the type of the tensor it belongs to; a
zero point of the output then has the type of the first input.
"""

from typing import Any, cast

import numpy as np

from ops.functional.apply import Operand, V, apply, apply1, is_var
from ops.functional.spatial import Sizes, both_pads, each
from ops.quantised.conv import CONV_INTEGER, QLINEAR_CONV
from ops.quantised.dynamic import DYNAMIC_QUANTIZE_LINEAR
from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.quantised.matmul import MATMUL_INTEGER, QLINEAR_MATMUL


def _scale(value: Operand) -> Operand:
    """A plain number as float32."""
    return np.asarray(value, np.float32) if isinstance(value, (int, float)) else value


def _zero(value: Operand, like: Operand) -> Operand:
    """A plain number in the element type of `like`, a tensor or an element type."""
    if not isinstance(value, int):
        return value
    return np.asarray(value, like.spec.dtype if is_var(like) else getattr(like, "dtype", like))


def _windows(x: V, strides: Sizes, pads: Sizes, dilations: Sizes, group: int) -> dict[str, Any]:
    n = x.spec.ndim - 2
    sizes = {"strides": each(strides, n), "pads": both_pads(pads, n), "dilations": each(dilations, n)}
    return {**sizes, "group": group}


def quantize_linear(
    x: V,
    scale: Operand,
    zero_point: Operand | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    to: Any = None,
    precision: Any = None,
) -> V:
    """saturate(round(x / scale) + zero_point), halves to even, as the type of the zero point (or `to`, else uint8).

    A scale is one number, one for each place along `axis`, or one for each `block_size` places along it. Divides in the
    type of the scale, or in `precision`.
    """
    more = () if zero_point is None else (_zero(zero_point, np.dtype(to or np.uint8)),)
    return apply1(
        QUANTIZE_LINEAR, x, _scale(scale), *more, axis=axis, block_size=block_size, to=to, precision=precision
    )


def dequantize_linear(
    x: V, scale: Operand, zero_point: Operand | None = None, *, axis: int = 1, block_size: int = 0, to: Any = None
) -> V:
    """(x - zero_point) * scale, as the type of the scale (or `to`); scales as in quantize_linear."""
    more = () if zero_point is None else (_zero(zero_point, x),)
    return apply1(DEQUANTIZE_LINEAR, x, _scale(scale), *more, axis=axis, block_size=block_size, to=to)


def dynamic_quantize_linear(x: V) -> tuple[V, V, V]:
    """x as uint8, with the scale and the zero point that its range asks for."""
    return cast(tuple[V, V, V], apply(DYNAMIC_QUANTIZE_LINEAR, (x,)))


def matmul_integer(a: V, b: Operand, a_zero_point: Operand = 0, b_zero_point: Operand = 0) -> V:
    """(a - a_zero_point) @ (b - b_zero_point) for int8 or uint8, exactly, in int32."""
    return apply1(MATMUL_INTEGER, a, b, _zero(a_zero_point, a), _zero(b_zero_point, b))


def qlinear_matmul(
    a: V,
    b: Operand,
    *,
    a_scale: Operand,
    b_scale: Operand,
    y_scale: Operand,
    a_zero_point: Operand = 0,
    b_zero_point: Operand = 0,
    y_zero_point: Operand = 0,
) -> V:
    """The product of two quantised matrices, quantised again."""
    left, right = (_scale(a_scale), _zero(a_zero_point, a)), (b, _scale(b_scale), _zero(b_zero_point, b))
    return apply1(QLINEAR_MATMUL, a, *left, *right, _scale(y_scale), _zero(y_zero_point, a))


def conv_integer(
    x: V,
    w: Operand,
    x_zero_point: Operand = 0,
    w_zero_point: Operand = 0,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
) -> V:
    """Convolution of x - x_zero_point with w - w_zero_point for int8 or uint8, exactly, in int32."""
    zeros = (_zero(x_zero_point, x), _zero(w_zero_point, w))
    return apply1(CONV_INTEGER, x, w, *zeros, **_windows(x, strides, pads, dilations, group))


def qlinear_conv(
    x: V,
    w: Operand,
    bias: Operand | None = None,
    *,
    x_scale: Operand,
    w_scale: Operand,
    y_scale: Operand,
    x_zero_point: Operand = 0,
    w_zero_point: Operand = 0,
    y_zero_point: Operand = 0,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
) -> V:
    """Convolution of quantised tensors, quantised again. The bias is int32, its scale x_scale * w_scale."""
    left, right = (_scale(x_scale), _zero(x_zero_point, x)), (w, _scale(w_scale), _zero(w_zero_point, w))
    more = (_scale(y_scale), _zero(y_zero_point, x), *(() if bias is None else (bias,)))
    return apply1(QLINEAR_CONV, x, *left, *right, *more, **_windows(x, strides, pads, dilations, group))
