"""x * 1, x / 1, x - 0, x + -0: arithmetic with a number that changes no bit of x."""

import math

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.elementwise.binary import ADD, DIV, MUL, SUB


def skip_neutral(edit: Edit, operator: Operator) -> None:
    """Lets the readers of x * 1 read x, unless it is a copy of what a parameter held."""
    if operator.schema not in (ADD, SUB, MUL, DIV):
        return
    for x, other in _operands(operator):
        number = edit.number(other)
        alike = x.spec == operator.outputs[0].spec and not edit.is_old_state(x)
        if number is not None and alike and _is_neutral(operator, number):
            edit.replace(operator.outputs[0], x)
            return


def _operands(operator: Operator) -> tuple[tuple[Var, Var], ...]:
    a, b = operator.inputs
    return ((a, b), (b, a)) if operator.schema in (ADD, MUL) else ((a, b),)


def _is_neutral(operator: Operator, number: float) -> bool:
    """Adding 0 to a float makes 0 of -0, adding -0 makes nothing of anything; subtracting, it is the other way."""
    if operator.schema in (MUL, DIV):
        return number == 1
    if operator.outputs[0].dtype.kind != "f":
        return number == 0
    return number == 0 and math.copysign(1, number) == (-1 if operator.schema is ADD else 1)


NEUTRAL = RulePass("neutral numbers", skip_neutral)
