"""The smallest and the largest number of an element type, as numpy and ONNX mean it."""

from typing import Any

import numpy as np

from ops.spec import BOOL, FLOATS, Array


def constant(value: float, dtype: np.dtype[Any]) -> Array:
    """A 0-d array: the operand that numpy neither converts nor copies."""
    return np.asarray(value, dtype=dtype)


def lowest(dtype: np.dtype[Any]) -> Array:
    """The smallest finite number (False for bool), 0-d."""
    if dtype == BOOL:
        return np.asarray(False)
    return np.asarray(np.finfo(dtype).min if dtype in FLOATS else np.iinfo(dtype).min, dtype=dtype)


def highest(dtype: np.dtype[Any]) -> Array:
    """The largest finite number (True for bool), 0-d."""
    if dtype == BOOL:
        return np.asarray(True)
    return np.asarray(np.finfo(dtype).max if dtype in FLOATS else np.iinfo(dtype).max, dtype=dtype)
