"""Layer, RMS, instance and group normalization (ONNX LayerNormalization-17, RMSNormalization-23,
InstanceNormalization-22, GroupNormalization-21). Statistics are computed in float32 for float16 data.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.tiling import axis_stripes
from ops.common.windows import require_spatial
from ops.norm import onednn
from ops.norm.compiled import channel_kernel, row_kernel
from ops.norm.gradient import channel_norm_gradient, row_norm_gradient
from ops.norm.rows import RowNorm, bind_row_norm, row_norm_temporaries
from ops.schema.attributes import Attribute, flag, integer, number
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    contiguous_at,
    overwrites_first,
)
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import FLOATS, Array, Shape, normalize_axis

_EPSILON = Attribute("epsilon", number, 1e-5)
_AXIS = Attribute("axis", integer, -1)


def _check_dtypes(inputs: Specs) -> None:
    x = inputs[0]
    if x.dtype not in FLOATS or any(s.dtype != x.dtype for s in inputs):
        shown = ", ".join(s.dtype.name for s in inputs)
        raise DtypeError(f"takes floating-point numbers of one type, not {shown}")


def _tail(shape: Shape, attrs: Attrs) -> Shape:
    """Returns the dimensions from `axis` on: those of one row."""
    return shape[normalize_axis(attrs["axis"], len(shape)) :]


def _infer_layer(inputs: Specs, attrs: Attrs) -> Specs:
    _check_dtypes(inputs)
    x, tail = inputs[0], _tail(inputs[0].shape, attrs)
    for spec in inputs[1:]:
        if not _fits(spec.shape, tail):
            raise ShapeError(f"scale or bias {spec.shape} does not broadcast to the normalized dimensions {tail}")
    if not attrs.get("with_stats", False):
        return (x,)
    row = x.with_shape(x.shape[: x.ndim - len(tail)] + (1,) * len(tail)).with_dtype("float32")
    return (x, row, row)


def _fits(shape: Shape, tail: Shape) -> bool:
    """Returns whether `shape` broadcasts to exactly `tail`."""
    pairs = zip(reversed(shape), reversed(tail), strict=False)
    return len(shape) <= len(tail) and all(n in (1, m) for n, m in pairs)


def _infer_channels(inputs: Specs, attrs: Attrs) -> Specs:
    _check_dtypes(inputs)
    x, groups = inputs[0], attrs.get("num_groups", 1)
    require_spatial(x)
    if any(s.shape != x.shape[1:2] for s in inputs[1:]):
        raise ShapeError(f"scale {inputs[1].shape} and bias {inputs[2].shape} must be one number for each channel")
    if groups < 1 or x.shape[1] % groups:
        raise AttributeValueError(f"num_groups is {groups}, which does not divide {x.shape[1]} channels")
    return (x,)


def _scale_tail(tail: Shape, rows: Array, factors: tuple[Array, ...], _: int, __: int) -> tuple[Thunk, ...]:
    whole = rows.reshape((len(rows), *tail))
    return tuple(partial(f, whole, v, whole) for f, v in zip((np.multiply, np.add), factors, strict=False))


def _scale_channels(each: int, rows: Array, factors: tuple[Array, ...], a: int, b: int) -> tuple[Thunk, ...]:
    """Returns steps that scale and shift rows a to b (exclusive) of an image, in place.

    A row has `each` channels. `factors` are scale and bias, with one number for each channel of the image.
    """
    whole = rows.reshape(((b - a) * each, -1)) if rows.size else rows
    columns = (v[a * each : b * each].reshape((-1, 1)) for v in factors)
    return tuple(partial(f, whole, v, whole) for f, v in zip((np.multiply, np.add), columns, strict=True))


def _layer(signature: Signature, centred: bool) -> RowNorm:
    tail = _tail(signature.x.shape, signature.attrs)
    rows = math.prod(signature.x.shape[: signature.x.ndim - len(tail)])
    return RowNorm(1, rows, math.prod(tail), signature.attrs["epsilon"], centred, partial(_scale_tail, tail))


def _layer_norm(signature: Signature) -> RowNorm:
    return _layer(signature, centred=True)


def _rms_norm(signature: Signature) -> RowNorm:
    return _layer(signature, centred=False)


def _groups(signature: Signature) -> int:
    return int(signature.attrs.get("num_groups", signature.x.shape[1]))


def _channel_norm(signature: Signature) -> RowNorm:
    batch, channels = signature.x.shape[:2]
    groups = signature.attrs.get("num_groups", channels)
    each = channels // groups if groups else 0
    width = each * math.prod(signature.x.shape[2:])
    scale = partial(_scale_channels, each)
    return RowNorm(batch, groups, width, signature.attrs["epsilon"], centred=True, scale=scale)


def _kernel(norm: Callable[[Signature], RowNorm]) -> Kernel:
    def bind(call: Binding) -> Thunk:
        return bind_row_norm(norm(call.signature), call)

    def temporaries(signature: Signature) -> Specs:
        return row_norm_temporaries(norm(signature), signature)

    return Kernel("rows", bind, temporaries, contiguous=contiguous_at(0))


def _cost(signature: Signature) -> Cost:
    return Cost(8 * signature.x.size, signature.x.nbytes + signature.y.nbytes)


_VECTOR_ROWS = row_kernel(centred=True)
_over_rows = partial(OpSchema, infer=_infer_layer, overwrites=overwrites_first, cost=_cost, stripes=axis_stripes)
_over_channels = partial(
    OpSchema,
    infer=_infer_channels,
    kernels=(channel_kernel(_groups), _kernel(_channel_norm)),
    arity=(3, 3),
    overwrites=overwrites_first,
    cost=_cost,
    gradient=channel_norm_gradient,
)
LAYER_NORM = _over_rows(
    name="layer_norm",
    summary="(x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis` on.",
    kernels=(onednn.layer_norm(_VECTOR_ROWS), _VECTOR_ROWS, _kernel(_layer_norm)),
    arity=(2, 3),
    attributes=(_AXIS, _EPSILON, Attribute("with_stats", flag, False)),
    gradient=row_norm_gradient,
)
RMS_NORM = _over_rows(
    name="rms_norm",
    summary="x / sqrt(mean(x ** 2) + epsilon) * scale over the dimensions from `axis` on.",
    kernels=(row_kernel(centred=False), _kernel(_rms_norm)),
    arity=(2, 2),
    attributes=(_AXIS, _EPSILON),
    gradient=partial(row_norm_gradient, centred=False),
)
INSTANCE_NORM = _over_channels(
    name="instance_norm",
    summary="(x - mean) / sqrt(variance + epsilon) * scale + bias over each channel of each image.",
    attributes=(_EPSILON,),
)
GROUP_NORM = _over_channels(
    name="group_norm",
    summary="(x - mean) / sqrt(variance + epsilon) * scale + bias over `num_groups` groups of channels of each image.",
    attributes=(Attribute("num_groups", integer), _EPSILON),
)
OPS = (LAYER_NORM, RMS_NORM, INSTANCE_NORM, GROUP_NORM)


def layer_norm(x: V, scale: Operand, bias: Operand | None = None, axis: int = -1, epsilon: float = 1e-5) -> V:
    """Normalizes to mean 0 and variance 1 over the dimensions from `axis` on, then times scale, plus bias."""
    return apply1(LAYER_NORM, x, scale, *(() if bias is None else (bias,)), axis=axis, epsilon=epsilon)


def rms_norm(x: V, scale: Operand, axis: int = -1, epsilon: float = 1e-5) -> V:
    """Returns x / sqrt(mean(x ** 2) + epsilon) * scale over the dimensions from `axis` on."""
    return apply1(RMS_NORM, x, scale, axis=axis, epsilon=epsilon)


def instance_norm(x: V, scale: Operand, bias: Operand, epsilon: float = 1e-5) -> V:
    """Normalizes to mean 0 and variance 1 in each channel of an image, then times scale (C,), plus bias (C,)."""
    return apply1(INSTANCE_NORM, x, scale, bias, epsilon=epsilon)


def group_norm(x: V, scale: Operand, bias: Operand, num_groups: int, epsilon: float = 1e-5) -> V:
    """Normalizes to mean 0 and variance 1 in each group of channels of an image, then times scale, plus bias (C,)."""
    return apply1(GROUP_NORM, x, scale, bias, num_groups=num_groups, epsilon=epsilon)
