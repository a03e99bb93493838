"""Operands of functions that take vars, arrays and numbers in any order."""

from typing import Any, TypeAlias, cast

from ops.functional.apply import V, apply
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array

Mixed: TypeAlias = V | Array | float
"""A var, an array, or a number (which takes the dtype of the first var). One operand of a call must be a var."""


def combine(schema: OpSchema, *operands: Mixed[V], **attrs: Any) -> V:
    """Adds an operator of one output. Raises ArityError where no operand is a var."""
    return cast(V, apply(schema, operands, **attrs)[0])
