"""Quantisation parameters, quantised tensors, weights and biases, as quantize and dequantize operators define them."""

from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.quantised.linear import DEQUANTIZE_LINEAR
from ops.quantised.params import BYTES, SINGLE, ends
from ops.tensor.spec import Array, normalize_axis

_SHIFT = 128
"""The difference between uint8 and int8 values, and zero points, that mean the same real number."""

_WHOLE = 0.01
"""The largest distance from a whole number that counts as one: units are products of rounded scales."""

_NOT_CONSTANT = np.empty(0)


@frozen(eq=False)
class QuantParams:
    """The parameters of a linear quantisation: real = (value - zero) * scale, with one scale for the whole tensor."""

    scale: np.float32
    zero: int
    dtype: np.dtype[Any]

    def same(self, other: "QuantParams") -> bool:
        """Returns whether equal quantised values mean equal real numbers."""
        return (self.scale, self.zero, self.dtype) == (other.scale, other.zero, other.dtype)

    def quantised(self, real: float) -> float:
        """Returns the quantised value of a real number or of an infinity, within the bounds of the type."""
        least, most = ends(self.dtype)
        with np.errstate(all="ignore"):
            rounded = np.rint(np.float32(real) / self.scale) + np.float32(self.zero)
        return float(np.fmin(np.fmax(rounded, least), most))

    def parameters(self) -> tuple[Array, Array]:
        """Returns scale and zero point as 0-d arrays."""
        return np.asarray(self.scale), np.asarray(self.zero, self.dtype)

    @property
    def unsigned(self) -> "QuantParams":
        """Returns the parameters that give the same real numbers with uint8 values."""
        return (
            QuantParams(self.scale, self.zero + _SHIFT, np.dtype("uint8")) if self.dtype == np.dtype("int8") else self
        )


def quant_params_of(edit: Edit, operator: Operator) -> QuantParams | None:
    """Returns the parameters of a quantize_linear or a dequantize_linear.

    None where scale or zero point are not constant, are more than one number, or are not float32 and 8 bits.
    """
    attrs = operator.attrs
    quantised = operator.inputs[0] if operator.schema is DEQUANTIZE_LINEAR else operator.outputs[0]
    real = operator.outputs[0] if operator.schema is DEQUANTIZE_LINEAR else operator.inputs[0]
    precision = attrs.get("precision") or SINGLE
    if attrs["block_size"] or real.dtype != SINGLE or precision != SINGLE or quantised.dtype not in BYTES:
        return None
    parameters = [edit.constants.get(v) for v in operator.inputs[1:]]
    if any(p is None or p.size != 1 for p in parameters) or operator.inputs[1].dtype != SINGLE:
        return None
    scale, *zero = (p.reshape(-1)[0] for p in parameters if p is not None)
    if not (np.isfinite(scale) and scale > 0):
        return None
    return QuantParams(np.float32(scale), int(zero[0]) if zero else 0, quantised.dtype)


@frozen(eq=False)
class QuantisedVar:
    """A quantised tensor and its parameters."""

    var: Var
    params: QuantParams


def quantised_source(edit: Edit, var: Var) -> QuantisedVar | None:
    """Returns the quantised tensor that a var is dequantised from, or None."""
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or edit.is_overwritten_state(operator.inputs[0]):
        return None
    params = quant_params_of(edit, operator)
    return None if params is None else QuantisedVar(operator.inputs[0], params)


@frozen(eq=False)
class QuantisedWeights:
    """Constant int8 weights with zero point 0. `scale` has one number, or one for each position along `axis`."""

    values: Array
    scale: Array
    axis: int


def quantised_weights(edit: Edit, var: Var) -> QuantisedWeights | None:
    """Returns the quantised constant that a var is dequantised from, or None.

    None also where the values minus their zero points do not fit into int8.
    """
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or operator.attrs["block_size"]:
        return None
    arrays = [edit.constants.get(v) for v in operator.inputs]
    if any(a is None for a in arrays) or var.dtype != SINGLE:
        return None
    values, scale, *zeros = (a for a in arrays if a is not None)
    if values.dtype not in BYTES or scale.dtype != SINGLE or not (np.isfinite(scale) & (scale > 0)).all():
        return None
    axis = normalize_axis(operator.attrs["axis"], values.ndim) if scale.size > 1 else 0
    return _centred(values, scale.reshape(-1), zeros, axis)


def _centred(values: Array, scale: Array, zeros: list[Array], axis: int) -> QuantisedWeights | None:
    if not any(z.any() for z in zeros) and values.dtype == np.dtype("int8"):
        return QuantisedWeights(values, scale, axis)
    zero = zeros[0].astype(np.int16).reshape(-1) if zeros else np.zeros(1, np.int16)
    centred = values.astype(np.int16) - zero.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    if centred.size and (centred.min() < -_SHIFT or centred.max() >= _SHIFT):
        return None
    return QuantisedWeights(centred.astype(np.int8), scale, axis)


def quantised_bias(edit: Edit, var: Var, unit: Array, *, exactly: bool) -> Array | None:
    """Returns a constant or dequantised bias as int32 multiples of `unit`, which has one number for each channel.

    None where the bias is not constant, has not one number for each channel along its last axis, does not fit into
    int32, or, if `exactly`, is no whole multiple.
    """
    if var.spec.size != unit.size or any(n != 1 for n in var.shape[:-1]):
        return None
    real = _real(edit, var)
    if real.size != unit.size:
        return None
    with np.errstate(all="ignore"):
        multiples = real / unit.astype(np.float64)
        whole = np.rint(multiples)
        if not (np.abs(whole) < 2**31).all() or (exactly and (np.abs(multiples - whole) > _WHOLE).any()):
            return None
    return whole.astype(np.int32)


def _real(edit: Edit, var: Var) -> Array:
    """Returns the real numbers of a bias that is constant or dequantised from constants; an empty array otherwise."""
    if var in edit.constants:
        return edit.constants[var].astype(np.float64).reshape(-1)
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or operator.attrs["block_size"]:
        return _NOT_CONSTANT
    arrays = [edit.constants.get(v) for v in operator.inputs]
    if any(a is None for a in arrays):
        return _NOT_CONSTANT
    values, scale, *zeros = (a.astype(np.float64).reshape(-1) for a in arrays if a is not None)
    return np.asarray((values - (zeros[0] if zeros else 0.0)) * scale)
