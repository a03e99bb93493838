"""Comparisons and logic of two broadcast inputs; the output is bool (ONNX Equal, Less ... And, Or, Xor)."""

import numpy as np

from ops.common.apply import Mixed, V, combine
from ops.common.elementwise import predicate
from ops.tensor.spec import BOOL, COMPUTED, NUMBERS

_BOOLS = frozenset({BOOL})

EQUAL = predicate("equal", COMPUTED, np.equal, "Whether a == b.")
LESS = predicate("less", NUMBERS, np.less, "Whether a < b.")
LESS_OR_EQUAL = predicate("less_or_equal", NUMBERS, np.less_equal, "Whether a <= b.")
GREATER = predicate("greater", NUMBERS, np.greater, "Whether a > b.")
GREATER_OR_EQUAL = predicate("greater_or_equal", NUMBERS, np.greater_equal, "Whether a >= b.")
AND = predicate("and", _BOOLS, np.logical_and, "Whether both hold.")
OR = predicate("or", _BOOLS, np.logical_or, "Whether at least one holds.")
XOR = predicate("xor", _BOOLS, np.logical_xor, "Whether exactly one holds.")
OPS = (EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, AND, OR, XOR)


def equal(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a == b."""
    return combine(EQUAL, a, b)


def less(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a < b."""
    return combine(LESS, a, b)


def less_or_equal(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a <= b."""
    return combine(LESS_OR_EQUAL, a, b)


def greater(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a > b."""
    return combine(GREATER, a, b)


def greater_or_equal(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns a >= b."""
    return combine(GREATER_OR_EQUAL, a, b)


def logical_and(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns whether both hold."""
    return combine(AND, a, b)


def logical_or(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns whether at least one holds."""
    return combine(OR, a, b)


def logical_xor(a: Mixed[V], b: Mixed[V]) -> V:
    """Returns whether exactly one holds."""
    return combine(XOR, a, b)
