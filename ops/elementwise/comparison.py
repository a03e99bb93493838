"""Comparisons and logic of two broadcast inputs; the output is bool (ONNX Equal, Less ... And, Or, Xor)."""

import numpy as np

from ops.common.elementwise import predicate
from ops.tensor.spec import BOOL, DTYPES, NUMBERS

_BOOLS = frozenset({BOOL})

EQUAL = predicate("equal", DTYPES, np.equal, "Whether a == b.")
LESS = predicate("less", NUMBERS, np.less, "Whether a < b.")
LESS_OR_EQUAL = predicate("less_or_equal", NUMBERS, np.less_equal, "Whether a <= b.")
GREATER = predicate("greater", NUMBERS, np.greater, "Whether a > b.")
GREATER_OR_EQUAL = predicate("greater_or_equal", NUMBERS, np.greater_equal, "Whether a >= b.")
AND = predicate("and", _BOOLS, np.logical_and, "Whether both hold.")
OR = predicate("or", _BOOLS, np.logical_or, "Whether at least one holds.")
XOR = predicate("xor", _BOOLS, np.logical_xor, "Whether exactly one holds.")
OPS = (EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, AND, OR, XOR)
