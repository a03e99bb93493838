"""Operators that give their input back: what looks at it as it lies is it."""

from engine.operator import Operator
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.layout import Layout


def skip_no_ops(edit: Edit, operator: Operator) -> None:
    """Lets the readers of an output that is a view of all of the first input, in its order, read that input."""
    x = operator.inputs[0] if operator.inputs else None
    if x is None:
        return
    layouts = operator.schema.views(Layout.dense(x.spec), operator.signature)
    for var, layout in zip(operator.outputs, layouts, strict=True):
        is_x = layout is not None and layout.is_dense and not layout.offset and var.spec == x.spec
        if is_x and not (x in edit.assigned and edit.is_fetched(var)):
            edit.replace(var, x)


NO_OPS = RulePass("no-ops", skip_no_ops)
