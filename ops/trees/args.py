"""Codes of decision trees, and the arguments of their compiled kernel."""

from typing import Final

from ops.native.records import record

LESS_OR_EQUAL, LESS, GREATER_OR_EQUAL, GREATER, EQUAL, NOT_EQUAL, LEAF = range(7)
"""What a node compares an element of a row with its threshold by; a leaf compares nothing."""
CODE: Final = 7
"""The bits of a test that have its code."""
NAN_IS_TRUE: Final = 8
"""The bit of a test that says that NaN passes it."""
TEST, FEATURE, ON_TRUE, ON_FALSE = range(4)
"""Columns of the splits: the test, the column of x, and the node behind each answer. A leaf has, in place of these two,
the first of its votes and the one behind the last."""
COLUMNS: Final = 4
SUM, MIN, MAX = range(3)
"""What becomes of several votes for one target."""
ENSEMBLE = record(
    "x splits thresholds roots targets weights y rows features nodes trees votes outputs aggregate: int64"
)
"""y[i, targets[v]], the sum, the least or the greatest of weights[v] over all votes v of the leaves that row i reaches.

x (rows, features), thresholds (nodes,), weights (votes,) and y (rows, outputs) are of one type, splits (nodes,
COLUMNS), roots (trees,) and targets (votes,) of int32.
"""
