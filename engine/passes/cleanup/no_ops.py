"""Operators that give an input back: what looks at it as it lies, or holds it and nothing else, is it."""

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.tensor.layout import Layout


def skip_no_ops(edit: Edit, operator: Operator) -> None:
    """Lets the readers of an output that is an input, element for element, read that input."""
    for output, source in _same(operator):
        if not edit.is_old_state(source):  # it may be a copy that is read after the update
            edit.replace(output, source)


def _same(operator: Operator) -> list[tuple[Var, Var]]:
    """(output, input) that the declared layouts say are one and the same."""
    if not operator.inputs:
        return []
    x, (y, *_), signature = operator.inputs[0], operator.outputs, operator.signature
    views = operator.schema.views(Layout.dense(x.spec), signature)
    found = [(v, x) for v, layout in zip(operator.outputs, views, strict=True) if _covers(layout, v, x)]
    if not found:
        holds = operator.schema.input_places(Layout.dense(y.spec), signature)
        found = [(y, v) for v, layout in zip(operator.inputs, holds, strict=True) if _covers(layout, y, v)][:1]
    return found


def _covers(layout: Layout | None, one: Var, other: Var) -> bool:
    """Whether the layout of one in the dense other is the other's own."""
    return layout is not None and layout.is_dense and not layout.offset and one.spec == other.spec


NO_OPS = RulePass("no-ops", skip_no_ops)
