"""Quantisation and dequantisation with scales and zero points (ONNX QuantizeLinear-25, DequantizeLinear-25)."""

from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.costs import flops_per_input_element
from ops.common.thunks import in_turn
from ops.common.tiling import axis_rows, first_input_rows
from ops.quantised.linear_compiled import LINEAR
from ops.quantised.params import (
    PIECE,
    SCALES,
    SINGLE,
    STORED_TYPES,
    Grain,
    check_scale,
    ends,
    pieces,
    quantised_type,
    scale_operand,
    to_narrow_floats,
    to_quantised,
    zero_point_operand,
)
from ops.schema.attributes import Attribute, element_type, flag, integer, optional
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Stripe, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import NARROW_FLOATS, POWERS, Array, TensorSpec

_INT32, _UINT8, _DOUBLE = np.dtype("int32"), np.dtype("uint8"), np.dtype("float64")
_SCALES = SCALES | {POWERS}
_GRAIN = (Attribute("axis", integer, 1), Attribute("block_size", integer, 0))


def _check_zero(inputs: Specs, block: int) -> None:
    """Raises ShapeError for a zero point of another shape than the scale; a single number has 0 or 1 dimensions."""
    for zero in inputs[2:]:
        single = block == 0 and all(s.size == 1 and s.ndim <= 1 for s in inputs[1:])
        if zero.shape != inputs[1].shape and not single:
            raise ShapeError(f"zero point of shape {zero.shape} for scale of shape {inputs[1].shape}")


def _grain(signature: Signature) -> Grain:
    attrs = signature.attrs
    return Grain.of(signature.x, signature.inputs[1], attrs["axis"], attrs["block_size"])


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows; None where scales are blocks, or one for each row."""
    if signature.attrs["block_size"]:
        return None
    rows = first_input_rows if signature.inputs[1].size == 1 else axis_rows
    return rows(signature, first, last, axis)


def _quantize_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, scale = inputs[:2]
    if x.dtype not in SCALES | {_INT32}:
        raise DtypeError(f"takes float32, float16 or int32, not {x.dtype}")
    check_scale(scale, _SCALES)
    _check_zero(inputs, attrs["block_size"])
    Grain.of(x, scale, attrs["axis"], attrs["block_size"])
    dtype = quantised_type(inputs[2], STORED_TYPES) if len(inputs) > 2 else attrs["to"] or _UINT8
    if dtype not in STORED_TYPES or (attrs["to"] or dtype) != dtype:
        raise DtypeError(f"quantises to integers or floats of 2 to 16 bits, like its zero point, not to {attrs['to']}")
    if (attrs["precision"] or SINGLE) not in SCALES:
        raise DtypeError(f"divides in float32 or float16, not {attrs['precision']}")
    return (x.with_dtype(dtype),)


def _quantize_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of the temporaries of quantising.

    They are quotients, both bounds, quotients in the dtype of the division, scale, and zero point (zeros if missing).
    """
    piece = TensorSpec((min(PIECE, signature.x.size),), SINGLE)
    scale = signature.inputs[1]
    divided = signature.attrs["precision"] or (scale.dtype if scale.dtype in SCALES else SINGLE)
    other = piece.with_dtype(divided) if divided != SINGLE else TensorSpec((0,), SINGLE)
    return piece, piece, piece, other, scale.with_dtype(divided), signature.inputs[-1].with_dtype(SINGLE)


def _zero(call: Binding, buffer: Array) -> Thunk:
    """Returns the step that writes the zero point, or zeros if there is none."""
    return partial(np.copyto, buffer, call.inputs[2]) if len(call.inputs) > 2 else partial(buffer.fill, 0)


def _quantize(call: Binding) -> Thunk:
    single, *bounds, other, scale, zero = call.temporaries
    grain, ndim = _grain(call.signature), call.x.ndim
    steps: list[Thunk] = [partial(np.copyto, scale, call.inputs[1], casting="same_kind"), _zero(call, zero)]
    steps += (partial(b.fill, n) for b, n in zip(bounds, ends(call.y.dtype), strict=True))
    parts = zip(grain.cut(call.x, call.y), grain.spread(scale, ndim), grain.spread(zero, ndim), strict=True)
    for whole, *more in parts:
        for x, y, factor, shift in pieces(*whole, *more):
            real, quotient = prefix(single, x.shape), prefix(other if other.size else single, x.shape)
            if x.dtype != quotient.dtype:
                steps.append(partial(np.copyto, quotient, x, casting="unsafe"))
            steps.append(partial(np.divide, x if x.dtype == quotient.dtype else quotient, factor, quotient))
            if quotient.dtype != SINGLE:
                steps.append(partial(np.copyto, real, quotient))
            if y.dtype in NARROW_FLOATS:
                steps += to_narrow_floats(real, shift, y, tuple(bounds) if call.attrs["saturate"] else ())
            else:
                steps += to_quantised(real, shift, y, tuple(bounds))
    return in_turn(*steps)


def _dequantize_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, scale = inputs[:2]
    if x.dtype not in STORED_TYPES | {_INT32}:
        raise DtypeError(f"takes integers of 2 to 16 bits, floats of 4 or 8 bits, or int32, not {x.dtype}")
    check_scale(scale, _SCALES)
    _check_zero(inputs, attrs["block_size"])
    if len(inputs) > 2 and inputs[2].dtype != x.dtype:
        raise DtypeError(f"the zero point is {inputs[2].dtype}, and x is {x.dtype}")
    Grain.of(x, scale, attrs["axis"], attrs["block_size"])
    dtype = attrs["to"] or scale.dtype
    if dtype not in SCALES:
        raise DtypeError(f"dequantises to float32 or float16, not {dtype}")
    return (x.with_dtype(dtype),)


def _differences(signature: Signature) -> TensorSpec:
    """Returns the spec of x - zero point, which is exact.

    It has 33 bits for int32, and 17 for others; float32 has 24.
    """
    wide = signature.x.dtype == _INT32
    return TensorSpec((min(PIECE, signature.x.size),), _DOUBLE if wide else SINGLE)


def _dequantize_temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of differences, products, scale and zero point."""
    buffer, scale = _differences(signature), signature.inputs[1]
    zero = signature.inputs[-1].with_dtype(buffer.dtype)
    return buffer, buffer.with_dtype(SINGLE), scale.with_dtype(SINGLE), zero


def _dequantize(call: Binding) -> Thunk:
    exact, single, scale, zero = call.temporaries
    grain, ndim = _grain(call.signature), call.x.ndim
    steps: list[Thunk] = [partial(np.copyto, scale, call.inputs[1]), _zero(call, zero)]
    parts = zip(grain.cut(call.x, call.y), grain.spread(scale, ndim), grain.spread(zero, ndim), strict=True)
    for whole, *more in parts:
        for x, y, factor, shift in pieces(*whole, *more):
            real = y if y.dtype == SINGLE else prefix(single, x.shape)
            difference = real if exact.dtype == SINGLE else prefix(exact, x.shape)
            steps.append(partial(np.copyto, difference, x))
            steps.append(partial(np.subtract, difference, shift, difference))
            if difference is not real:
                steps.append(partial(np.copyto, real, difference, casting="same_kind"))
            steps.append(partial(np.multiply, real, factor, real))
            if real is not y:
                steps.append(partial(np.copyto, y, real, casting="same_kind"))
    return in_turn(*steps)


QUANTIZE_LINEAR = OpSchema(
    name="quantize_linear",
    summary="saturate(round(x / scale) + zero_point), with a scale for all, each place along `axis`, or blocks.",
    infer=_quantize_infer,
    kernels=(LINEAR, Kernel("numpy", _quantize, _quantize_temporaries)),
    arity=(2, 3),
    attributes=(
        *_GRAIN,
        Attribute("to", optional(element_type), None),
        Attribute("precision", optional(element_type), None),
        Attribute("saturate", flag, True),
    ),
    cost=flops_per_input_element(4),
    rows=_rows,
)
DEQUANTIZE_LINEAR = OpSchema(
    name="dequantize_linear",
    summary="(x - zero_point) * scale, with a scale for all, for each place along `axis`, or for blocks along it.",
    infer=_dequantize_infer,
    kernels=(LINEAR, Kernel("numpy", _dequantize, _dequantize_temporaries)),
    arity=(2, 3),
    attributes=(*_GRAIN, Attribute("to", optional(element_type), None)),
    cost=flops_per_input_element(4),
    rows=_rows,
)
OPS = (QUANTIZE_LINEAR, DEQUANTIZE_LINEAR)


def quantize_linear(
    x: V,
    scale: Operand,
    zero_point: Operand | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    to: Any = None,
    precision: Any = None,
    saturate: bool = True,
) -> V:
    """Returns saturate(round(x / scale) + zero_point), halves to even, in the type of the zero point (or `to`, uint8).

    A scale is one number, one for each place along `axis`, or one for each `block_size` places along it. Divides in the
    type of the scale, or in `precision`. Without `saturate`, what is beyond the range of a float of 8 bits becomes NaN
    or infinity.
    """
    more = () if zero_point is None else (zero_point_operand(zero_point, np.dtype(to or np.uint8)),)
    return apply1(
        QUANTIZE_LINEAR,
        x,
        scale_operand(scale),
        *more,
        axis=axis,
        block_size=block_size,
        to=to,
        precision=precision,
        saturate=saturate,
    )


def dequantize_linear(
    x: V, scale: Operand, zero_point: Operand | None = None, *, axis: int = 1, block_size: int = 0, to: Any = None
) -> V:
    """Returns (x - zero_point) * scale, in the type of the scale (or `to`); scales as in quantize_linear."""
    more = () if zero_point is None else (zero_point_operand(zero_point, x),)
    return apply1(DEQUANTIZE_LINEAR, x, scale_operand(scale), *more, axis=axis, block_size=block_size, to=to)
