"""What multiplies each channel by a constant and adds another one: normalization as at inference, and arithmetic."""

import numpy as np
from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.norm.batch_norm import BATCH_NORM
from ops.tensor.spec import FLOATS, Array, TensorSpec

_SWAPPED = (ADD, MUL)
"""Of these the constant may stand first."""


@frozen(eq=False)
class Affine:
    """x * factor + shift, in float64, one of each for every channel along an axis."""

    x: Var
    factor: Array
    shift: Array

    @property
    def shifts(self) -> bool:
        """Whether anything is added."""
        return bool(self.shift.any())

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are; a variance below 0 gives some that are not."""
        return bool(np.isfinite(self.factor).all() and np.isfinite(self.shift).all())


def affine(edit: Edit, operator: Operator, axis: int) -> Affine | None:
    """The operator, where it does that to one of its inputs with channels along `axis`, and no more."""
    y = operator.outputs[0].spec  # what stands first may be a constant of fewer axes
    if y.dtype not in FLOATS or not -y.ndim <= axis < y.ndim:
        return None
    found = None
    if operator.schema is BATCH_NORM and axis % y.ndim == 1:
        found = _normalization(edit, operator)
    elif operator.schema in (ADD, SUB, MUL, DIV):
        found = _arithmetic(edit, operator, axis)
    return found if found is not None and found.is_finite else None


def _normalization(edit: Edit, operator: Operator) -> Affine | None:
    x, *given = operator.inputs
    if any(v not in edit.constants for v in given):
        return None
    scale, bias, mean, variance = (edit.constants[v].astype(np.float64) for v in given)
    with np.errstate(all="ignore"):
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
    one, none = np.ones_like(numbers), np.zeros_like(numbers)
    with np.errstate(all="ignore"):
        if operator.schema is MUL:
            return Affine(x, numbers, none)
        if operator.schema is DIV:
            return Affine(x, 1 / numbers, none)
        return Affine(x, one, numbers if operator.schema is ADD else -numbers)


def by_channel(array: Array, to: TensorSpec, axis: int) -> Array | None:
    """One number a channel, in float64, where an array that broadcasts to that spec varies along that axis alone."""
    shape = (1,) * (to.ndim - array.ndim) + array.shape
    if any(n != 1 and i != axis % to.ndim for i, n in enumerate(shape)):
        return None
    return np.broadcast_to(array.reshape(-1), (to.shape[axis],)).astype(np.float64)
