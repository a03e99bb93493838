"""Comparisons and logic of two operands, which broadcast together; the output is bool."""

from ops.elementwise.comparison import AND, EQUAL, GREATER, GREATER_OR_EQUAL, LESS, LESS_OR_EQUAL, OR, XOR
from ops.functional.apply import V
from ops.functional.operands import Mixed, combine


def equal(a: Mixed[V], b: Mixed[V]) -> V:
    """a == b"""
    return combine(EQUAL, a, b)


def less(a: Mixed[V], b: Mixed[V]) -> V:
    """a < b"""
    return combine(LESS, a, b)


def less_or_equal(a: Mixed[V], b: Mixed[V]) -> V:
    """a <= b"""
    return combine(LESS_OR_EQUAL, a, b)


def greater(a: Mixed[V], b: Mixed[V]) -> V:
    """a > b"""
    return combine(GREATER, a, b)


def greater_or_equal(a: Mixed[V], b: Mixed[V]) -> V:
    """a >= b"""
    return combine(GREATER_OR_EQUAL, a, b)


def logical_and(a: Mixed[V], b: Mixed[V]) -> V:
    """Whether both hold."""
    return combine(AND, a, b)


def logical_or(a: Mixed[V], b: Mixed[V]) -> V:
    """Whether at least one holds."""
    return combine(OR, a, b)


def logical_xor(a: Mixed[V], b: Mixed[V]) -> V:
    """Whether exactly one holds."""
    return combine(XOR, a, b)
