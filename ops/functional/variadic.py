"""Functions of any number of operands, which broadcast together."""

from ops.elementwise.variadic import MAX, MEAN, MIN, SUM
from ops.functional.apply import V
from ops.functional.operands import Mixed, combine


def sum(*operands: Mixed[V]) -> V:
    """Sum of all operands, element by element."""
    return combine(SUM, *operands)


def mean(*operands: Mixed[V]) -> V:
    """Arithmetic mean of all operands, element by element."""
    return combine(MEAN, *operands)


def min(*operands: Mixed[V]) -> V:
    """Smallest of all operands, element by element."""
    return combine(MIN, *operands)


def max(*operands: Mixed[V]) -> V:
    """Largest of all operands, element by element."""
    return combine(MAX, *operands)
