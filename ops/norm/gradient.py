"""Gradients of layer, RMS, instance and group normalization: one operator for x, one for the scale, and the rules."""

from collections.abc import Sequence
from typing import Any

from ops.common.costs import flops_per_input_element
from ops.norm.gradient_rows import bind_data, bind_scale, data_temporaries, scale_temporaries
from ops.schema.attributes import Attribute, flag, integer, number
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Kernel, OpSchema, Specs, all_contiguous, overwrites_either
from ops.tensor.errors import AttributeValueError, DtypeError, GradientError, ShapeError
from ops.tensor.spec import FLOATS, Shape, TensorSpec, normalize_axis

_ATTRIBUTES = (
    Attribute("axis", integer, -1),
    Attribute("num_groups", integer, 0),
    Attribute("centred", flag, True),
    Attribute("epsilon", number, 1e-5),
)


def _scale_shape(x: TensorSpec, attrs: Attrs) -> Shape:
    """Returns the dimensions of a row, or one number a channel. Raises AttributeValueError."""
    groups = attrs["num_groups"]
    if not groups:
        return x.shape[normalize_axis(attrs["axis"], x.ndim) :]
    if x.ndim < 2 or groups < 0 or x.shape[1] % groups:
        raise AttributeValueError(f"num_groups is {groups}, which does not divide the channels of {x.shape}")
    return x.shape[1:2]


def _infer_scale(inputs: Specs, attrs: Attrs) -> Specs:
    dy, x = inputs[:2]
    if x.dtype not in FLOATS or any(s.dtype != x.dtype for s in inputs):
        raise DtypeError(f"takes floating-point numbers of one type, not {', '.join(s.dtype.name for s in inputs)}")
    if dy.shape != x.shape:
        raise ShapeError(f"gradient {dy.shape} and data {x.shape} must have one shape")
    return (x.with_shape(_scale_shape(x, attrs)),)


def _infer_data(inputs: Specs, attrs: Attrs) -> Specs:
    (scale,) = _infer_scale(inputs, attrs)
    if inputs[2] != scale:
        raise ShapeError(f"scale {inputs[2].shape} must be {scale.shape}")
    return (inputs[1],)


def _gradient(b: Backward, scale: Tensor, over: Sequence[int], **attrs: Any) -> Terms:
    """Returns the gradients of x, scale and bias; that of the bias is the sum of dy over the axes `over`.

    The sums are computed first, so that dx may then lie over dy. Raises GradientError where a statistic has a gradient.
    """
    if any(g is not None for g in b.grads[1:]):
        raise GradientError("has no rule for a gradient through its statistics")

    def bias() -> Tensor:
        return b.sum(b.dy, over, keepdims=False) if over else b.dy

    makers = (None, lambda: b.apply1(NORM_SCALE_GRADIENT, b.dy, b.x, **attrs), bias)
    terms = b.terms(*makers[: len(b.inputs)])
    dx = b.apply1(NORM_DATA_GRADIENT, b.dy, b.x, scale, **attrs) if b.wants(0) else None
    return (dx, *terms[1:])


def row_norm_gradient(b: Backward, centred: bool = True) -> Terms:
    """Returns the gradients of layer and RMS normalization.

    Scale and bias have the dimensions from `axis` on, or fewer.
    """
    axis = normalize_axis(b.attrs["axis"], b.x.ndim)
    scale = b.expand(b.inputs[1], b.x.shape[axis:])
    return _gradient(b, scale, range(axis), axis=axis, centred=centred, epsilon=b.attrs["epsilon"])


def channel_norm_gradient(b: Backward) -> Terms:
    """Returns the gradients of instance and group normalization, which have one scale and one bias a channel."""
    groups = b.attrs.get("num_groups", b.x.shape[1])
    over = [i for i in range(b.x.ndim) if i != 1]
    return _gradient(b, b.inputs[1], over, num_groups=groups, epsilon=b.attrs["epsilon"])


NORM_DATA_GRADIENT = OpSchema(
    name="norm_data_gradient",
    summary="The gradient of a normalization of rows (layer, RMS, instance, group) by x, of dy, x and the scale.",
    infer=_infer_data,
    kernels=(Kernel("rows", bind_data, data_temporaries, contiguous=all_contiguous),),
    arity=(3, 3),
    attributes=_ATTRIBUTES,
    overwrites=overwrites_either,
    cost=flops_per_input_element(14),
)
NORM_SCALE_GRADIENT = OpSchema(
    name="norm_scale_gradient",
    summary="The gradient of a normalization of rows (layer, RMS, instance, group) by its scale, of dy and x.",
    infer=_infer_scale,
    kernels=(Kernel("rows", bind_scale, scale_temporaries, contiguous=all_contiguous),),
    arity=(2, 2),
    attributes=_ATTRIBUTES,
    cost=flops_per_input_element(14),
)
OPS = (NORM_DATA_GRADIENT, NORM_SCALE_GRADIENT)
