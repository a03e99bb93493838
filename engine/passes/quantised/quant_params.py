"""Grids of codes: what quantised networks say of a tensor by the operators around it, read out of a graph."""

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
"""From int8 to uint8: codes and zero points of the one are those of the other, moved up by so much."""

_WHOLE = 0.01
"""What is as near to a whole number is one: units are products of rounded scales."""

_NOTHING = np.empty(0)


@frozen(eq=False)
class Grid:
    """Real numbers (code - zero) * scale, one scale for all codes of a type."""

    scale: np.float32
    zero: int
    dtype: np.dtype[Any]

    def same(self, other: "Grid") -> bool:
        """Whether codes mean the same numbers."""
        return (self.scale, self.zero, self.dtype) == (other.scale, other.zero, other.dtype)

    def code(self, real: float) -> float:
        """The code that a real number, or an infinity, is rounded to; within the type's bounds."""
        least, most = ends(self.dtype)
        with np.errstate(all="ignore"):
            rounded = np.rint(np.float32(real) / self.scale) + np.float32(self.zero)
        return float(np.fmin(np.fmax(rounded, least), most))

    def parameters(self) -> tuple[Array, Array]:
        """Scale and zero point as 0-d arrays."""
        return np.asarray(self.scale), np.asarray(self.zero, self.dtype)

    @property
    def unsigned(self) -> "Grid":
        """The grid of the same numbers as uint8."""
        return Grid(self.scale, self.zero + _SHIFT, np.dtype("uint8")) if self.dtype == np.dtype("int8") else self


def grid_of(edit: Edit, operator: Operator) -> Grid | None:
    """The grid of the codes that a quantize_linear writes or a dequantize_linear reads; None where it is not one.

    It is none where scale or zero point are not constant, or are many, or are no float32 and bytes.
    """
    attrs = operator.attrs
    codes = operator.inputs[0] if operator.schema is DEQUANTIZE_LINEAR else operator.outputs[0]
    real = operator.outputs[0] if operator.schema is DEQUANTIZE_LINEAR else operator.inputs[0]
    divided = attrs.get("precision") or SINGLE
    if attrs["block_size"] or real.dtype != SINGLE or divided != SINGLE or codes.dtype not in BYTES:
        return None
    parameters = [edit.constants.get(v) for v in operator.inputs[1:]]
    if any(p is None or p.size != 1 for p in parameters) or operator.inputs[1].dtype != SINGLE:
        return None
    scale, *zero = (p.reshape(-1)[0] for p in parameters if p is not None)
    if not (np.isfinite(scale) and scale > 0):
        return None
    return Grid(np.float32(scale), int(zero[0]) if zero else 0, codes.dtype)


@frozen(eq=False)
class Codes:
    """A tensor of codes, and its grid."""

    var: Var
    grid: Grid


def codes_of(edit: Edit, var: Var) -> Codes | None:
    """The codes that a var is dequantised from, if it is."""
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or edit.is_old_state(operator.inputs[0]):
        return None
    grid = grid_of(edit, operator)
    return None if grid is None else Codes(operator.inputs[0], grid)


@frozen(eq=False)
class Weights:
    """Constant codes with zero point 0, int8, and a scale for each place along `axis` or one number."""

    codes: Array
    scale: Array
    axis: int


def weights_of(edit: Edit, var: Var) -> Weights | None:
    """The constant codes that a var is dequantised from, if it is, and if they fit into int8 less their zero points."""
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or operator.attrs["block_size"]:
        return None
    arrays = [edit.constants.get(v) for v in operator.inputs]
    if any(a is None for a in arrays) or var.dtype != SINGLE:
        return None
    codes, scale, *zeros = (a for a in arrays if a is not None)
    if codes.dtype not in BYTES or scale.dtype != SINGLE or not (np.isfinite(scale) & (scale > 0)).all():
        return None
    axis = normalize_axis(operator.attrs["axis"], codes.ndim) if scale.size > 1 else 0
    return _centred(codes, scale.reshape(-1), zeros, axis)


def _centred(codes: Array, scale: Array, zeros: list[Array], axis: int) -> Weights | None:
    if not any(z.any() for z in zeros) and codes.dtype == np.dtype("int8"):
        return Weights(codes, scale, axis)
    zero = zeros[0].astype(np.int16).reshape(-1) if zeros else np.zeros(1, np.int16)
    less = codes.astype(np.int16) - zero.reshape([-1 if i == axis else 1 for i in range(codes.ndim)])
    if less.size and (less.min() < -_SHIFT or less.max() >= _SHIFT):
        return None
    return Weights(less.astype(np.int8), scale, axis)


def bias_of(edit: Edit, var: Var, unit: Array, *, exactly: bool) -> Array | None:
    """A constant bias, or constant int32 codes of one, in whole numbers of `unit` (one for each channel).

    None where it is not constant, has not one number for each channel along its last axis, does not fit into int32, or,
    if that is wanted, is no whole number of it.
    """
    if var.spec.size != unit.size or any(n != 1 for n in var.shape[:-1]):
        return None
    real = _real(edit, var)
    if real.size != unit.size:
        return None
    with np.errstate(all="ignore"):
        parts = real / unit.astype(np.float64)
        whole = np.rint(parts)
        if not (np.abs(whole) < 2**31).all() or (exactly and (np.abs(parts - whole) > _WHOLE).any()):
            return None
    return whole.astype(np.int32)


def _real(edit: Edit, var: Var) -> Array:
    """The numbers of a bias that is constant, or dequantised from constants; none where it is not."""
    if var in edit.constants:
        return edit.constants[var].astype(np.float64).reshape(-1)
    operator = edit.writer(var)
    if operator is None or operator.schema is not DEQUANTIZE_LINEAR or operator.attrs["block_size"]:
        return _NOTHING
    arrays = [edit.constants.get(v) for v in operator.inputs]
    if any(a is None for a in arrays):
        return _NOTHING
    codes, scale, *zeros = (a.astype(np.float64).reshape(-1) for a in arrays if a is not None)
    return np.asarray((codes - (zeros[0] if zeros else 0.0)) * scale)
