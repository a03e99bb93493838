"""Two operators in a row that move elements become one: transposes, reshapes, expansions."""

import ops
from engine.graph.operator import Operator
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.movement.reshape import RESHAPE
from ops.movement.views import EXPAND, TRANSPOSE
from ops.tensor.spec import normalize_axes

Perm = tuple[int, ...]


def permutation(operator: Operator) -> Perm:
    """The axes that a transpose takes, in its order, counted from the front."""
    ndim = operator.inputs[0].ndim
    perm = operator.attrs["perm"]
    return tuple(reversed(range(ndim))) if perm is None else normalize_axes(perm, ndim)


def composed(first: Perm, second: Perm) -> Perm:
    """The permutation that does the first one, then the second."""
    return tuple(first[axis] for axis in second)


def merge(edit: Edit, operator: Operator) -> None:
    """Lets the second of two read what the first one reads. The first stays as long as others read it."""
    if operator.schema not in (TRANSPOSE, RESHAPE, EXPAND):
        return
    (var,), (y,) = operator.inputs, operator.outputs
    before = edit.writer(var)
    if before is None or before.schema is not operator.schema:
        return
    (x,) = before.inputs
    if edit.is_old_state(x):  # what lies between may be a copy that is read after the update
        return
    if operator.schema is TRANSPOSE:
        edit.replace(y, ops.transpose(x, composed(permutation(before), permutation(operator))))
    elif operator.schema is RESHAPE:
        edit.replace(y, ops.reshape(x, y.shape))
    else:
        edit.replace(y, ops.expand(x, y.shape))


MOVEMENT = RulePass("movement", merge)
