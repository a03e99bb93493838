"""Parts that kernels of channels-last convolutions share: inference, shapes, packed weights."""

import math
from collections.abc import Mapping

import numpy as np

from ops.common.epilogue import BIAS, RESIDUAL, require_finish
from ops.convolution.shapes import ConvCase, conv_case, infer_conv
from ops.schema.schema import Attrs, Binding, Signature, Specs
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, Shape
from ops.windows.pixels import channels_first, channels_last


def infer_nhwc_conv(inputs: Specs, attrs: Attrs) -> Specs:
    """Returns y, (N, outputs..., O)."""
    x, *rest = inputs
    if x.dtype == np.dtype("float16"):
        raise DtypeError("takes float32 or float64, not float16")
    if x.ndim < 3:
        raise ShapeError(f"data {x.shape} must have 2 + spatial dimensions, at least 3")
    (planes,) = infer_conv((channels_first(x), *rest[: RESIDUAL - 1]), attrs)
    y = channels_last(planes)
    for residual in inputs[RESIDUAL:]:
        if residual != y:
            raise ShapeError(f"the tensor to add is {residual}, but the convolution is {y}")
    require_finish(attrs)
    return (y,)


def case_of(signature: Signature) -> ConvCase:
    """Returns the numbers of an inferred signature."""
    return conv_case(channels_first(signature.x), signature.inputs[1], signature.attrs)


def dense_operands(signature: Signature) -> tuple[int, ...]:
    """Returns the positions of weights and bias, which must be dense."""
    return tuple(range(1, min(len(signature.inputs), RESIDUAL)))


def filters(case: ConvCase) -> Shape:
    """Returns the shape of the weights as matrices: group, taps * channels of the group, outputs of the group."""
    return case.group, case.taps * (case.channels // case.group), case.out_channels // case.group


def as_filters(w: Array, case: ConvCase) -> Array:
    """Returns the view (group, taps, channels of it, outputs of it) of the weights (O, C / group, kernel...)."""
    group, channels = case.group, case.channels // case.group
    return w.reshape((group, case.out_channels // group, channels, case.taps)).transpose(0, 3, 2, 1)


def pack_filters(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns the weights as matrices, if they are constant."""
    if 1 not in constants:
        return ()
    case = case_of(signature)
    spread = as_filters(np.ascontiguousarray(constants[1]), case)
    return (np.array(spread, order="C").reshape(filters(case)),)


def packed_filters(signature: Signature) -> Specs:
    """Returns the specs of what `pack_filters` returns."""
    if 1 not in signature.constants:
        return ()
    return (signature.inputs[1].with_shape(filters(case_of(signature))),)


def operands(call: Binding) -> tuple[Array | None, Array | None]:
    """Returns the bias (O,) and the tensor to add, each None if it is missing."""
    inputs = call.inputs
    return inputs[BIAS] if len(inputs) > BIAS else None, inputs[RESIDUAL] if len(inputs) > RESIDUAL else None


def padded_size(case: ConvCase, spans: Shape) -> int:
    """Returns the elements of a padded copy of this many pixels along each dimension; 0 without padding."""
    return case.channels * math.prod(spans) if case.windows.padded else 0
