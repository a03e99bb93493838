"""What kernels of channels-last convolutions of codes share: inference, the reading of shapes and bounds."""

import numpy as np

from ops.convolution.shapes import ConvCase, conv_case
from ops.quantised.conv_blocks import INT32
from ops.quantised.params import BYTES, SINGLE
from ops.quantised.sum import bounds, check_codes
from ops.schema.schema import Attrs, Cost, Overwrite, Signature, Specs
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import TensorSpec
from ops.windows.pixels import channels_first, channels_last

X, W, FACTOR, BIAS, RESIDUAL = range(5)
"""Positions of the inputs."""
_INT8 = np.dtype("int8")


def case_of(signature: Signature) -> ConvCase:
    """The numbers of a signature that was inferred."""
    return conv_case(channels_first(signature.x), signature.inputs[W], signature.attrs)


def infer_quantised_conv(inputs: Specs, attrs: Attrs) -> Specs:
    """(N, outputs..., O) of the type that is wanted."""
    x, w, factor, bias, *rest = inputs
    if x.dtype not in BYTES or w.dtype != _INT8:
        raise DtypeError(f"takes bytes and weights of int8, not {x.dtype} and {w.dtype}")
    if x.ndim < 3:
        raise ShapeError(f"data {x.shape} must have 2 + spatial dimensions, at least 3")
    case = conv_case(channels_first(x), w, attrs)
    channels = TensorSpec((case.out_channels,), SINGLE)
    if (factor, bias) != (channels, channels.with_dtype(INT32)):
        raise ShapeError(f"factor and bias must be float32 and int32 [{case.out_channels}], not {factor} and {bias}")
    shape = (case.batch, case.out_channels, *case.windows.outputs)
    y = channels_last(TensorSpec(shape, attrs["to"]))
    if attrs["to"] != SINGLE:
        check_codes(attrs)
    _check_rest(tuple(rest), y)
    return (y,)


def _check_rest(rest: Specs, y: TensorSpec) -> None:
    for residual in rest:
        if y.dtype not in BYTES or residual.dtype not in BYTES or residual.shape != y.shape:
            raise ShapeError(f"what is added is {residual}, but the convolution is {y}")


def quantised_conv_cost(signature: Signature) -> Cost:
    """Two operations a tap."""
    case = case_of(signature)
    touched = sum(s.nbytes for s in signature.inputs + signature.outputs)
    return Cost(2 * signature.y.size * case.taps * (case.channels // case.group), touched)


def dense_parameters(_: Signature) -> tuple[int, ...]:
    """Weights, factors and biases."""
    return W, FACTOR, BIAS


def overwrites_residual(signature: Signature) -> tuple[Overwrite, ...]:
    """y may be written over what is added."""
    rest = enumerate(signature.inputs[RESIDUAL:], RESIDUAL)
    return tuple(Overwrite(0, i) for i, spec in rest if spec == signature.y)


def bounds_of(attrs: Attrs) -> tuple[float, float]:
    """The least and the greatest result."""
    return (attrs["low"], attrs["high"]) if attrs["to"] == SINGLE else bounds(attrs)
