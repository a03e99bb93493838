"""Parts that kernels of channels-last quantised convolutions share: inference, shapes, bounds."""

import numpy as np

from ops.convolution.shapes import conv_case
from ops.quantised.conv_blocks import INT32
from ops.quantised.params import BYTES, SINGLE
from ops.quantised.sum import bounds, check_quantised
from ops.schema.schema import Attrs, Signature, Specs
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import TensorSpec
from ops.windows.pixels import channels_first, channels_last

X, W, FACTOR, BIAS, RESIDUAL = range(5)
"""Positions of the inputs."""
_INT8 = np.dtype("int8")


def infer_quantised_conv(inputs: Specs, attrs: Attrs) -> Specs:
    """Returns y, (N, outputs..., O), of the type in attribute `to`."""
    x, w, factor, bias, *rest = inputs
    if x.dtype not in BYTES or w.dtype != _INT8:
        raise DtypeError(f"takes int8 or uint8, and weights of int8, not {x.dtype} and {w.dtype}")
    if x.ndim < 3:
        raise ShapeError(f"data {x.shape} must have 2 + spatial dimensions, at least 3")
    case = conv_case(channels_first(x), w, attrs)
    channels = TensorSpec((case.out_channels,), SINGLE)
    if (factor, bias) != (channels, channels.with_dtype(INT32)):
        raise ShapeError(f"factor and bias must be float32 and int32 [{case.out_channels}], not {factor} and {bias}")
    shape = (case.batch, case.out_channels, *case.windows.outputs)
    y = channels_last(TensorSpec(shape, attrs["to"]))
    if attrs["to"] != SINGLE:
        check_quantised(attrs)
    _check_rest(tuple(rest), y)
    return (y,)


def _check_rest(rest: Specs, y: TensorSpec) -> None:
    for residual in rest:
        if y.dtype not in BYTES or residual.dtype not in BYTES or residual.shape != y.shape:
            raise ShapeError(f"the tensor to add is {residual}, but the convolution is {y}")


def dense_parameters(_: Signature) -> tuple[int, ...]:
    """Returns the positions of weights, factors and biases."""
    return W, FACTOR, BIAS


def bounds_of(attrs: Attrs) -> tuple[float, float]:
    """Returns the least and the greatest result."""
    return (attrs["low"], attrs["high"]) if attrs["to"] == SINGLE else bounds(attrs)
