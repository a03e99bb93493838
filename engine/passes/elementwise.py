"""Which operators compute each element of their output from the elements of their inputs in the same place."""

from engine.operator import Operator
from ops import activation, binary, comparison, power, smooth, unary, variadic
from ops.cast import CAST
from ops.schema import OpSchema
from ops.where import WHERE

ELEMENTWISE: frozenset[OpSchema] = frozenset(
    (
        *(*activation.OPS, *binary.OPS, *comparison.OPS, *power.OPS, *smooth.OPS, *unary.OPS, *variadic.OPS),
        *(CAST, WHERE),
    )
)
"""With broadcasting: inputs of fewer or shorter axes stand for larger ones."""


def is_elementwise(operator: Operator) -> bool:
    """Whether the operator is one of them."""
    return operator.schema in ELEMENTWISE
