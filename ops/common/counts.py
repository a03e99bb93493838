"""Numbers of elements that only data decide: counted by one operator, an attribute of the next one."""

from ops.common.indices import INT64
from ops.tensor.errors import CountError, ShapeError
from ops.tensor.spec import TensorSpec

SCALAR = TensorSpec((), INT64)
"""The output of an operator that counts."""
FOUND = TensorSpec((1,), INT64)
"""Room for the number of those found so far."""


def check_count(count: int, most: int) -> int:
    """Returns `count`, an attribute. Raises ShapeError outside [0, most]."""
    if not 0 <= count <= most:
        raise ShapeError(f"count {count} of {most} elements")
    return count


def check_found(actual: int, count: int) -> None:
    """Raises CountError where data hold another number of elements than was counted."""
    if actual != count:
        raise CountError(f"{actual} elements are there, and {count} were said to be")
