"""Channels-last convolution of constant weights by oneDNN, with groups, addition of a tensor and activation."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.epilogue import BIAS, RESIDUAL
from ops.convolution.nhwc_shapes import case_of
from ops.convolution.shapes import ConvCase
from ops.onednn import declarations as c
from ops.onednn.descriptors import Post, Sum, Tensor, channels_last, dense, numbers
from ops.onednn.epilogues import activation, has_activation
from ops.onednn.library import Library
from ops.onednn.nan_safe import call, loses_nan, packing
from ops.onednn.primitives import Operand, Primitive, reordered
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, first_weights
from ops.schema.workspace import bytes_spec
from ops.tensor.spec import Array, Shape

_FLOAT = np.dtype("float32")
_FEW_CHANNELS = 4
"""Input channels up to which our kernel `rows` is taken: it reads images channels first, without a reorder."""
_FEW_PIXELS, _SOME_PIXELS, _MANY_CHANNELS = 64, 256, 480
"""Pointwise convolutions of at most 64 pixels, or of at most 256 pixels and at least 480 channels, are left to our own
tiles: few pixels are multiplied by weights that come from main memory. tools/bench_kernels.py times both back-ends on
the layers of its networks (--operators nhwc_conv); these bounds trade those few layers against all others."""


@frozen
class Convolution:
    """A convolution, or a transposed one, in the library's numbers: weights (group, O, C, kernel...)."""

    x: Tensor
    weights: Shape
    y: Tensor
    strides: Shape
    dilations: Shape
    begins: Shape
    ends: Shape
    bias: bool
    posts: tuple[Post, ...]
    transposed: bool = False

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the description of the primitive; see `Case`."""
        kind = "deconvolution" if self.transposed else "convolution"
        bias = dense(self.y.shape[1:2]).descriptor(at) if self.bias else at.ffi.NULL
        return at.new(
            "primitive_desc",
            f"{kind}_forward_primitive_desc_create",
            at.engine,
            c.INFERENCE,
            c.DECONVOLUTION_DIRECT if self.transposed else c.CONVOLUTION_DIRECT,
            self.x.descriptor(at),
            Tensor(self.weights).descriptor(at),
            bias,
            self.y.descriptor(at),
            numbers(at, self.strides),
            numbers(at, tuple(d - 1 for d in self.dilations)),
            numbers(at, self.begins),
            numbers(at, self.ends),
            attributes,
        )


def _weights(case: ConvCase) -> Shape:
    """Returns the shape of the weights (O, C / group, kernel...), with a dimension for groups if there are several."""
    group, kernel = case.group, case.windows.kernel
    shape = case.out_channels // group, case.channels // group, *kernel
    return (group, *shape) if group > 1 else shape


def _convolution(signature: Signature) -> Convolution:
    """Returns the convolution; a tensor that is added lies in y."""
    case, w = case_of(signature), case_of(signature).windows
    y = channels_last(signature.y.shape, signature.y.shape[-1])
    added = (Sum(),) if len(signature.inputs) > RESIDUAL else ()
    return Convolution(
        channels_last(signature.x.shape, case.channels),
        _weights(case),
        y,
        w.strides,
        w.dilations,
        w.begins,
        w.ends,
        len(signature.inputs) > BIAS,
        (*added, *activation(signature.attrs)),
    )


def _primitives(signature: Signature) -> tuple[Primitive, ...]:
    return packing(_convolution(signature), signature.threads)


def _unsupported(signature: Signature) -> str:
    if signature.x.dtype != _FLOAT:
        return "not float32"
    if 1 not in signature.constants:
        return "weights that are not constant"
    if not signature.x.size or not signature.y.size:
        return "no elements"
    if not has_activation(signature.attrs):
        return "an activation that the library does not have"
    return _slower(signature) or ("" if _primitives(signature) else "the library has only reference code for it")


def _slower(signature: Signature) -> str:
    """Returns why our own kernels are taken, or an empty text where the library is.

    Ours read images of few channels without a reorder. They clip sums with an added tensor in registers, and keep NaN.
    They are taken where few pixels are multiplied by weights from main memory. tools/bench_kernels.py --operators
    nhwc_conv times both back-ends.
    """
    if len(signature.inputs) > RESIDUAL and loses_nan(_convolution(signature)):
        return "an addition and a bound: compiled code is faster"
    if signature.x.shape[-1] <= _FEW_CHANNELS:
        return "few channels: compiled code is faster"
    return "windows of one of few pixels: compiled code is faster" if _is_thin(signature) else ""


def _is_thin(signature: Signature) -> bool:
    """Returns whether it is a pointwise convolution, not depthwise, of few pixels."""
    case, pixels = case_of(signature), math.prod(signature.y.shape[:-1])
    if math.prod(case.windows.kernel) > 1 or case.channels == case.group:
        return False
    return pixels <= _FEW_PIXELS or (pixels <= _SOME_PIXELS and case.channels >= _MANY_CHANNELS)


def _temporaries(signature: Signature) -> Specs:
    return (bytes_spec(max(p.scratchpad for p in _primitives(signature))),)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if 1 not in constants:
        return ()
    primitive, shape = _primitives(signature)[0], _weights(case_of(signature))
    layout = dense(shape).descriptor(primitive.at)
    return (reordered(np.ascontiguousarray(constants[1]), layout, primitive.weights, primitive.threads),)


def _packed_specs(signature: Signature) -> Specs:
    primitive = _primitives(signature)[0]
    return (primitive.packed_spec,) if 1 in signature.constants else ()


def _bind(call_: Binding) -> Thunk:
    signature, inputs = call_.signature, call_.inputs
    case, primitive = _convolution(signature), _primitives(signature)[0]
    at = primitive.at
    operands = [
        Operand(c.SOURCE, case.x.descriptor(at), call_.x),
        Operand(c.WEIGHTS, primitive.weights, call_.packed[0]),
        Operand(c.TARGET, case.y.descriptor(at), call_.y),
    ]
    if len(inputs) > BIAS:
        operands.append(Operand(c.BIAS, dense(inputs[BIAS].shape).descriptor(at), inputs[BIAS]))
    return call(case, operands, call_.temporaries[0], signature.threads, inputs[RESIDUAL:])


CONVOLUTION = Kernel(
    "onednn",
    _bind,
    _temporaries,
    contiguous=all_contiguous,
    pack=_pack,
    packed_specs=_packed_specs,
    unread_after_pack=first_weights,
    unsupported=_unsupported,
    backend=ONEDNN,
)
"""float32, constant weights."""
