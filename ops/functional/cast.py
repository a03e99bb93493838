"""Conversion of a var to another element type."""

import numpy.typing as npt

from ops.elementwise.cast import CAST
from ops.functional.apply import V, apply1


def cast(x: V, to: npt.DTypeLike) -> V:
    """x in dtype `to`: floats are truncated to integers, bool is x != 0."""
    return apply1(CAST, x, to=to)
