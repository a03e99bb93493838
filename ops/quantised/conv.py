"""Convolution of int8 and uint8 (ONNX ConvInteger-10, QLinearConv-10), exact in int32, then quantised again."""

import math
from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.thunks import in_turn
from ops.common.windows import CONV_ATTRIBUTES, Sizes, spatial_attributes
from ops.convolution.shapes import ConvCase, conv_case
from ops.quantised.conv_blocks import INT32, Blocks, Work, by_output
from ops.quantised.params import (
    BYTES,
    SINGLE,
    check_scale,
    quantised_type,
    scale_and_zero_point,
    to_quantised,
    zero_point_operand,
)
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec


def _by_group(blocks: Blocks, y: Array) -> Array:
    """Returns the output as (batch, group, outputs, pixels)."""
    return y.reshape(len(y), blocks.case.group, blocks.outputs, blocks.case.pixels)


def _infer_quantised(x: TensorSpec, w: TensorSpec, attrs: Attrs) -> ConvCase:
    if not {x.dtype, w.dtype} <= BYTES:
        raise DtypeError(f"takes int8 and uint8, not {x.dtype} and {w.dtype}")
    return conv_case(x, w, attrs)


def _check_parameter(parameter: TensorSpec, most: int, dtype: np.dtype[Any]) -> None:
    if parameter.dtype != dtype:
        raise DtypeError(f"a zero point of {parameter.dtype} for {dtype}")
    _check_count(parameter, most)


def _check_count(parameter: TensorSpec, most: int) -> None:
    if parameter.ndim > 1 or parameter.size not in (1, most):
        raise ShapeError(f"a parameter has shape {parameter.shape}; it must have 1 or {most} numbers")


def _integer_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, w = inputs[:2]
    case = _infer_quantised(x, w, attrs)
    for zero, factor, most in zip(inputs[2:], (x, w), (1, case.out_channels), strict=False):
        _check_parameter(zero, most, factor.dtype)
    return (TensorSpec((case.batch, case.out_channels, *case.windows.outputs), INT32),)


def _integer_blocks(signature: Signature) -> Blocks:
    return Blocks(conv_case(signature.inputs[0], signature.inputs[1], signature.attrs))


def _integer_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of zero points, then of the scratch arrays of a block."""
    none = TensorSpec((), SINGLE)
    zeros = tuple(TensorSpec((s.size,), SINGLE) for s in (*signature.inputs[2:], none, none)[:2])
    return *zeros, *_integer_blocks(signature).scratch_specs(with_sums=False)


def _conv_integer(call: Binding) -> Thunk:
    blocks = _integer_blocks(call.signature)
    x_zero, w_zero, *scratch = call.temporaries
    steps: list[Thunk] = [partial(x_zero.fill, 0), partial(w_zero.fill, 0)]
    steps += [partial(np.copyto, buffer, zero) for buffer, zero in zip((x_zero, w_zero), call.inputs[2:], strict=False)]
    work = Work.of(blocks, (call.x, call.inputs[1]), (x_zero, w_zero), scratch)
    for image, y in zip(call.x, _by_group(blocks, call.y), strict=True):
        for groups, box in blocks.sums():
            steps += work.sums(image, groups, box, y[groups, :, box.flat])
    return in_turn(*steps)


def _linear_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = inputs
    case = _infer_quantised(x, w, attrs)
    for zero, factor, most in ((x_zero, x, 1), (w_zero, w, case.out_channels)):
        _check_parameter(zero, most, factor.dtype)
    for scale, most in ((x_scale, 1), (w_scale, case.out_channels), (y_scale, 1)):
        check_scale(scale)
        _check_count(scale, most)
    _check_count(y_zero, 1)
    if bias and bias[0] != TensorSpec((case.out_channels,), INT32):
        raise ShapeError(f"bias must be int32[{case.out_channels}], not {bias[0]}")
    return (TensorSpec((case.batch, case.out_channels, *case.windows.outputs), quantised_type(y_zero, BYTES)),)


def _linear_blocks(signature: Signature) -> Blocks:
    return Blocks(conv_case(signature.inputs[0], signature.inputs[3], signature.attrs))


def _linear_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of six parameters, of the factor from sums to outputs, then of a block's scratch arrays."""
    _, x_scale, x_zero, _, w_scale, w_zero, y_scale, y_zero, *_ = signature.inputs
    parameters = (x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, w_scale)
    scratch = _linear_blocks(signature).scratch_specs(with_sums=True)
    return *(TensorSpec((p.size,), SINGLE) for p in parameters), *scratch


def _qlinear_conv(call: Binding) -> Thunk:
    blocks = _linear_blocks(call.signature)
    *numbers, factor, weights, pixels, columns, real_buffer, sums_buffer, addend = call.temporaries
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero = numbers
    steps: list[Thunk] = [
        partial(np.copyto, n, call.inputs[i]) for n, i in zip(numbers, (1, 2, 4, 5, 6, 7), strict=True)
    ]
    steps += (partial(np.multiply, w_scale, x_scale, factor), partial(np.divide, factor, y_scale, factor))
    scratch = (weights, pixels, columns, real_buffer, sums_buffer, addend)
    work = Work.of(blocks, (call.x, call.inputs[3]), (x_zero, w_zero), scratch)
    factors = by_output(blocks, factor)[..., 0]
    for image, y in zip(call.x, _by_group(blocks, call.y), strict=True):
        for groups, box in blocks.sums():
            part = y[groups, :, box.flat]
            sums, real = (prefix(r, part.shape) for r in (sums_buffer, real_buffer))
            steps += work.sums(image, groups, box, sums)
            for bias in call.inputs[8:]:
                steps.append(partial(np.add, sums, by_output(blocks, bias)[groups, ..., 0], sums))
            steps.append(partial(np.copyto, real, sums, casting="same_kind"))
            steps.append(partial(np.multiply, real, factors[groups], real))
            steps += to_quantised(real, y_zero.reshape(()), part)
    return in_turn(*steps)


def _cost(signature: Signature) -> Cost:
    """Returns two operations for each tap."""
    w = signature.inputs[3 if len(signature.inputs) > 4 else 1]
    return Cost(2 * signature.y.size * math.prod(w.shape[1:]), signature.nbytes)


def _weights_dense(signature: Signature) -> tuple[int, ...]:
    return (3, 8) if len(signature.inputs) > 4 else (1,)


CONV_INTEGER = OpSchema(
    name="conv_integer",
    summary="int32 convolution of x - x_zero with w - w_zero, int8 or uint8; w_zero is one number, or one a channel.",
    infer=_integer_infer,
    kernels=(Kernel("columns", _conv_integer, _integer_temporaries, _weights_dense),),
    arity=(2, 4),
    attributes=CONV_ATTRIBUTES,
    cost=_cost,
)
QLINEAR_CONV = OpSchema(
    name="qlinear_conv",
    summary="Quantised convolution of quantised x and w, each followed by its scale and zero point; the bias is int32.",
    infer=_linear_infer,
    kernels=(Kernel("columns", _qlinear_conv, _linear_temporaries, _weights_dense),),
    arity=(8, 9),
    attributes=CONV_ATTRIBUTES,
    cost=_cost,
)
OPS = (CONV_INTEGER, QLINEAR_CONV)


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
    """Convolves x - x_zero_point with w - w_zero_point for int8 or uint8, exactly, in int32."""
    zeros = (zero_point_operand(x_zero_point, x), zero_point_operand(w_zero_point, w))
    return apply1(CONV_INTEGER, x, w, *zeros, **spatial_attributes(x.spec, strides, pads, dilations), group=group)


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
    """Convolves quantised tensors, and quantises the result. The bias is int32, its scale x_scale * w_scale."""
    left = scale_and_zero_point(x_scale, x_zero_point, x)
    right = scale_and_zero_point(w_scale, w_zero_point, w)
    out = scale_and_zero_point(y_scale, y_zero_point, x)
    attrs = spatial_attributes(x.spec, strides, pads, dilations)
    return apply1(QLINEAR_CONV, x, *left, w, *right, *out, *(() if bias is None else (bias,)), **attrs, group=group)
