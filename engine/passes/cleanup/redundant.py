"""Redundant operators: two movements in a row, no-ops, arithmetic with neutral numbers, and dead code.

All four passes leave every bit of the outputs as it is.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import Pass, RulePass
from engine.passes.edit import Edit
from engine.passes.permutation import composed, permutation
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.movement.reshape import RESHAPE
from ops.movement.views import EXPAND, TRANSPOSE
from ops.schema.schema import OpSchema, no_places, no_views
from ops.tensor.dims import dims_in
from ops.tensor.layout import Layout


def _merged_transpose(first: Operator, second: Operator) -> Var:
    return ops.transpose(first.inputs[0], composed(permutation(first), permutation(second)))


def _merged_reshape(first: Operator, second: Operator) -> Var:
    return ops.reshape(first.inputs[0], second.outputs[0].shape)


def _merged_expand(first: Operator, second: Operator) -> Var:
    return ops.expand(first.inputs[0], second.outputs[0].shape)


_MERGED: Mapping[OpSchema, Callable[[Operator, Operator], Var]] = {
    TRANSPOSE: _merged_transpose,
    RESHAPE: _merged_reshape,
    EXPAND: _merged_expand,
}


def merge_movement(edit: Edit, operator: Operator) -> None:
    """Merges two operators of one kind that move elements.

    1. transpose(transpose(x, p), q) -> transpose(x, p then q)
    2. reshape(reshape(x)) -> reshape(x)
    3. expand(expand(x)) -> expand(x)

    The first operator stays as long as others read it. The rule does not apply where x is overwritten state: the value
    between the two may be a copy that is read after the update.
    """
    merge = _MERGED.get(operator.schema)
    first = edit.writer(operator.inputs[0]) if merge is not None else None
    if merge is None or first is None or first.schema is not operator.schema:
        return
    if not edit.is_overwritten_state(first.inputs[0]):
        edit.replace(operator.outputs[0], merge(first, operator))


def skip_no_ops(edit: Edit, operator: Operator) -> None:
    """Removes an operator that gives an input back, element for element.

    1. y is a view of x that covers all of x in its order (identity, reshape to the same shape, whole slice) -> x
    2. y holds x at its first byte and nothing else (concatenation of one tensor) -> x

    The declared layouts of the schema decide, never its name. The rule does not apply where x is overwritten state: y
    may be a copy that is read after the update; where y decides lengths; nor where y is an output and x an array of
    dimensions.
    """
    for output, source in _equal_pairs(edit, operator):
        is_copy = edit.is_of_dimensions(source) and edit.is_fetched(output)
        if not is_copy and not edit.is_overwritten_state(source) and not edit.decides_lengths(output):
            edit.replace(output, source)


def _equal_pairs(edit: Edit, operator: Operator) -> list[tuple[Var, Var]]:
    """Returns the pairs (output, input) that are the same tensor according to the declared layouts.

    Layouts are those of each sample where dimensions are open, and the shapes must be equal for all lengths. Samples
    do not tell that of dimensions among the attributes that are none of the output: those of a slice's first element.
    """
    if not operator.inputs or not _may_be_equal(operator) or _hides_dims(operator):
        return []
    signatures, x, (y, *_) = edit.sampled(operator.signature), operator.inputs[0], operator.outputs
    views = [operator.schema.views(Layout.dense(s.inputs[0]), s) for s in signatures]
    columns = zip(operator.outputs, zip(*views, strict=True), strict=True)
    pairs = [(v, x) for v, layouts in columns if v.spec == x.spec and all(map(_covers, layouts))]
    if pairs:
        return pairs
    places = [operator.schema.input_places(Layout.dense(s.outputs[0]), s) for s in signatures]
    columns = zip(operator.inputs, zip(*places, strict=True), strict=True)
    return [(y, v) for v, layouts in columns if v.spec == y.spec and all(map(_covers, layouts))][:1]


def _may_be_equal(operator: Operator) -> bool:
    """Returns whether an operator declares views or places at all, and an output has the spec of an input."""
    schema, (y, *_), x = operator.schema, operator.outputs, operator.inputs[0]
    is_view = schema.views is not no_views and any(v.spec == x.spec for v in operator.outputs)
    return is_view or (schema.input_places is not no_places and any(v.spec == y.spec for v in operator.inputs))


def _hides_dims(operator: Operator) -> bool:
    """Returns whether dimensions among the attributes are none of an output."""
    attributes, outputs = (_leaves(d) for d in (operator.attrs.values(), (v.shape for v in operator.outputs)))
    return not attributes <= outputs


def _leaves(values: Iterable[Any]) -> frozenset[Hashable]:
    return frozenset().union(*(dim.leaves for dim in dims_in(tuple(values))))


def _covers(layout: Layout | None) -> bool:
    """Returns whether a layout inside a dense tensor of its size is that of the whole tensor."""
    return layout is not None and layout.is_dense and not layout.offset


def skip_neutral(edit: Edit, operator: Operator) -> None:
    """Removes arithmetic with a neutral number, which changes no bit of x.

    1. x * 1, 1 * x, x / 1 -> x
    2. x + 0, 0 + x, x - 0 -> x for integers
    3. x + -0.0, -0.0 + x, x - 0.0 -> x for floats. x + 0.0 stays: it makes 0.0 of -0.0

    The rule does not apply where the result has another shape than x, nor where x is overwritten state.
    """
    if operator.schema not in (ADD, SUB, MUL, DIV):
        return
    for x, other in _operands(operator):
        number = edit.uniform_value(other)
        alike = x.spec == operator.outputs[0].spec and not edit.is_overwritten_state(x)
        if number is not None and alike and _is_neutral(operator, number):
            edit.replace(operator.outputs[0], x)
            return


def _operands(operator: Operator) -> tuple[tuple[Var, Var], ...]:
    a, b = operator.inputs
    return ((a, b), (b, a)) if operator.schema in (ADD, MUL) else ((a, b),)


def _is_neutral(operator: Operator, number: float) -> bool:
    """Returns whether the operator with this number as an operand is the identity, in every bit."""
    if operator.schema in (MUL, DIV):
        return number == 1
    if operator.outputs[0].dtype.kind != "f":
        return number == 0
    return number == 0 and math.copysign(1, number) == (-1 if operator.schema is ADD else 1)


class _DeadCode(Pass):
    """The pass that removes what no output and no parameter needs. Inputs stay: the caller feeds them."""

    name = "dead code"
    tolerance = 0.0

    def apply(self, edit: Edit) -> None:
        """Removes operators and constants."""
        edit.remove_dead_code()


MOVEMENT = RulePass("movement", merge_movement, tolerance=0.0)
NO_OPS = RulePass("no-ops", skip_no_ops, tolerance=0.0)
NEUTRAL = RulePass("neutral numbers", skip_neutral, tolerance=0.0)
DEAD_CODE = _DeadCode()
