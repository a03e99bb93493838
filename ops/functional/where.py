"""Choice between two operands."""

from typing import Any

import numpy as np

from ops.elementwise.where import WHERE
from ops.functional.apply import V, is_var
from ops.functional.operands import Mixed, combine


def where(condition: Mixed[V], x: Mixed[V], y: Mixed[V]) -> V:
    """x where the condition holds, else y; all three broadcast. A number takes the dtype of the other side."""
    sides: tuple[Mixed[V], Mixed[V]] = (_like(x, y), _like(y, x))
    return combine(WHERE, condition, *sides)


def _like(value: Any, other: Any) -> Any:
    if not isinstance(value, (bool, int, float)):
        return value
    return np.asarray(value, dtype=other.spec.dtype if is_var(other) else np.asarray(other).dtype)
