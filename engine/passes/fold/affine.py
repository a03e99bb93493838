"""Operators that multiply each channel by a constant and add a constant: batch normalization, and plain arithmetic."""

import numpy as np
from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.norm.batch_norm import BATCH_NORM
from ops.tensor.spec import FLOATS, Array, TensorSpec

_SWAPPED = (ADD, MUL)
"""The operators whose constant may be the first operand."""


@frozen(eq=False)
class Affine:
    """The function x * factor + shift, with one float64 factor and shift for each channel along an axis."""

    x: Var
    factor: Array
    shift: Array

    @property
    def shifts(self) -> bool:
        """Returns whether any shift is not 0."""
        return bool(self.shift.any())

    @property
    def is_finite(self) -> bool:
        """Returns whether all factors and shifts are finite. A variance below 0 gives some that are not."""
        return bool(np.isfinite(self.factor).all() and np.isfinite(self.shift).all())


def affine(edit: Edit, operator: Operator, axis: int) -> Affine | None:
    """Returns the operator as an affine function of one input with channels along `axis`; None where it is not one.

    1. batch_norm(x, constants), axis 1 -> factor = scale / sqrt(variance + epsilon), shift = bias - mean * factor
    2. x * c, c * x, x / c, x + c, c + x, x - c -> a constant c that varies along the axis only

    None also for types other than floats, and for factors or shifts that are not finite.
    """
    y = operator.outputs[0].spec  # the first input may be a constant with fewer axes
    if y.dtype not in FLOATS or not -y.ndim <= axis < y.ndim:
        return None
    function = None
    if operator.schema is BATCH_NORM and axis % y.ndim == 1:
        function = _normalization(edit, operator)
    elif operator.schema in (ADD, SUB, MUL, DIV):
        function = _arithmetic(edit, operator, axis)
    return function if function is not None and function.is_finite else None


def _normalization(edit: Edit, operator: Operator) -> Affine | None:
    x, *parameters = operator.inputs
    if any(v not in edit.constants for v in parameters):
        return None
    with np.errstate(all="ignore"):
        scale, bias, mean, variance = (edit.constants[v].astype(np.float64) for v in parameters)
        factor = scale / np.sqrt(variance + operator.attrs["epsilon"])
        return Affine(x, factor, bias - mean * factor)


def _arithmetic(edit: Edit, operator: Operator, axis: int) -> Affine | None:
    x, constant = operator.inputs
    if constant not in edit.constants and operator.schema in _SWAPPED:
        x, constant = constant, x
    if constant not in edit.constants or x.spec != operator.outputs[0].spec:
        return None
    numbers = by_channel(edit.constants[constant], x.spec, axis)
    if numbers is None:
        return None
    ones, zeros = np.ones_like(numbers), np.zeros_like(numbers)
    with np.errstate(all="ignore"):
        if operator.schema is MUL:
            return Affine(x, numbers, zeros)
        if operator.schema is DIV:
            return Affine(x, 1 / numbers, zeros)
        return Affine(x, ones, numbers if operator.schema is ADD else -numbers)


def by_channel(array: Array, to: TensorSpec, axis: int) -> Array | None:
    """Returns one float64 number for each channel; None where the array varies along another axis than `axis`.

    The array broadcasts to the spec `to`.
    """
    shape = (1,) * (to.ndim - array.ndim) + array.shape
    if any(n != 1 and i != axis % to.ndim for i, n in enumerate(shape)):
        return None
    with np.errstate(invalid="ignore"):  # a signalling NaN among weights
        return np.broadcast_to(array.reshape(-1), (to.shape[axis],)).astype(np.float64)
