"""Functions on vars about sizes that only data decide."""

from ops.functional.apply import V, apply1
from ops.nonzero import COUNT_NONZERO


def count_nonzero(x: V) -> V:
    """How many elements are not zero, as an int64 scalar: NaN counts, -0.0 does not."""
    return apply1(COUNT_NONZERO, x)
