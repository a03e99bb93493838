"""The smallest and the largest number of an element type, as numpy and ONNX mean it."""

from typing import Any

import ml_dtypes
import numpy as np

from ops.tensor.spec import BFLOAT16, BOOL, FLOATS, NARROW, NARROW_INTEGERS, Array


def constant(value: float, dtype: np.dtype[Any]) -> Array:
    """Returns a 0-d array: the operand that numpy neither converts nor copies."""
    return np.asarray(value, dtype=dtype)


def info(dtype: np.dtype[Any]) -> Any:
    """Returns numpy's facts of an element type that is a number: `min`, `max` and so on."""
    if dtype in NARROW_INTEGERS:
        return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    if dtype == BFLOAT16 or dtype in NARROW:
        return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)


def lowest(dtype: np.dtype[Any]) -> Array:
    """Returns the smallest finite number (False for bool), 0-d."""
    if dtype == BOOL:
        return np.asarray(False)
    return np.asarray(info(dtype).min, dtype=dtype)


def highest(dtype: np.dtype[Any]) -> Array:
    """Returns the largest finite number (True for bool), 0-d."""
    if dtype == BOOL:
        return np.asarray(True)
    return np.asarray(info(dtype).max, dtype=dtype)
