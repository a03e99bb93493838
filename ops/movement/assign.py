"""The next value of a parameter, written over the one it has."""

from ops.common.costs import copy_cost
from ops.common.thunks import copier
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk, overwrites_first, zero_gradient
from ops.tensor.errors import ShapeError


def _infer(inputs: Specs, _: Attrs) -> Specs:
    old, new = inputs
    if old != new:
        raise ShapeError(f"a parameter that is {old} cannot be assigned {new}")
    return (new,)


def _assign(call: Binding) -> Thunk:
    return copier(call.inputs[1], call.y)


ASSIGN = OpSchema(
    "assign",
    _infer,
    (Kernel("numpy", _assign),),
    (2, 2),
    overwrites=overwrites_first,
    cost=copy_cost,
    gradient=zero_gradient,
    summary="The second input, written over the first, which is a parameter.",
)
OPS = (ASSIGN,)
