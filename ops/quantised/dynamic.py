"""Quantisation with a scale and a zero point that are computed from the tensor (ONNX DynamicQuantizeLinear-11)."""

from functools import partial
from typing import cast

import numpy as np

from ops.common.apply import V, apply
from ops.common.costs import flops_per_input_element
from ops.common.thunks import in_turn
from ops.quantised.params import PIECE, SINGLE, Grain, pieces, to_quantised
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, Array, TensorSpec

_UINT8 = np.dtype("uint8")


def _dynamic_infer(inputs: Specs, _: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype != SINGLE:
        raise DtypeError(f"takes float32, not {x.dtype}")
    return x.with_dtype(_UINT8), TensorSpec((), SINGLE), TensorSpec((), _UINT8)


def _dynamic_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of a piece, of three numbers (both ends of the range, the zero point), and of a flag."""
    piece = TensorSpec((min(PIECE, signature.x.size),), SINGLE)
    return piece, TensorSpec((3,), SINGLE), TensorSpec((), BOOL)


def _range(x: Array, low: Array, high: Array) -> Thunk:
    """Returns the step that writes the least and the greatest element; 0 is one of them, NaN is not."""
    zero = constant(0, SINGLE)
    return in_turn(
        partial(np.fmin.reduce, x, axis=None, out=low),
        partial(np.fmax.reduce, x, axis=None, out=high),
        partial(np.fmin, low, zero, low),
        partial(np.fmax, high, zero, high),
    )


def _dynamic(call: Binding) -> Thunk:
    x, (y, scale, zero_point) = call.x, call.outputs
    buffer, numbers, flat_range = call.temporaries
    low, high, zero = (numbers[i, ...] for i in range(3))
    quantise: list[Thunk] = []
    for source, target in pieces(*Grain(-1).cut(x, y)[0]):
        real = prefix(buffer, source.shape)
        quantise += (partial(np.divide, source, scale, real), *to_quantised(real, zero, target))
    return in_turn(
        _range(x, low, high) if x.size else in_turn(partial(low.fill, 0), partial(high.fill, 0)),
        partial(np.subtract, high, low, scale),
        partial(np.divide, scale, constant(255, SINGLE), scale),
        partial(np.equal, low, high, flat_range),
        partial(np.copyto, scale, constant(1, SINGLE), where=flat_range),
        partial(np.divide, low, scale, low),
        partial(np.negative, low, low),
        *to_quantised(low, constant(0, SINGLE), zero_point),
        partial(np.copyto, zero, zero_point),
        *quantise,
    )


DYNAMIC_QUANTIZE_LINEAR = OpSchema(
    name="dynamic_quantize_linear",
    summary="x as uint8, and the scale and zero point for which the range of x, including 0, just fits.",
    infer=_dynamic_infer,
    kernels=(Kernel("numpy", _dynamic, _dynamic_temporaries),),
    cost=flops_per_input_element(4),
)
OPS = (DYNAMIC_QUANTIZE_LINEAR,)


def dynamic_quantize_linear(x: V) -> tuple[V, V, V]:
    """Returns x as uint8, with the scale and the zero point that its range asks for."""
    return cast(tuple[V, V, V], apply(DYNAMIC_QUANTIZE_LINEAR, (x,)))
