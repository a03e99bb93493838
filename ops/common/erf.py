"""The door to numba: elementwise functions that numpy lacks, compiled when they are first asked for."""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

_EDGE = np.float32(3.832506856900711)
_P = tuple(map(np.float32, (2.2905065861e-4, 3.4082910107e-3, 5.0955695062e-2, 1.8520832239e-1, 1.128379143519084)))
_Q = tuple(
    map(
        np.float32,
        (-1.1791602954e-7, 2.3547966471e-5, 1.0179625278e-3, 1.4070470171e-2, 1.1098505178e-1, 4.9746925110e-1, 1.0),
    )
)


def _erf_single(x: Any) -> Any:
    """Rational approximation of Eigen (generic_erf_float): within 5 units in the last place; numba vectorises it."""
    one = np.float32(1)
    t = min(max(x, -_EDGE), _EDGE)
    s = t * t
    p = (((_P[0] * s + _P[1]) * s + _P[2]) * s + _P[3]) * s + _P[4]
    q = (((((_Q[0] * s + _Q[1]) * s + _Q[2]) * s + _Q[3]) * s + _Q[4]) * s + _Q[5]) * s + _Q[6]
    return min(max(t * p / q, -one), one)


def _erf_double(x: Any) -> Any:
    return math.erf(x)


def _ufunc(function: Callable[[Any], Any], signature: str) -> np.ufunc:
    made: np.ufunc = import_module("numba").vectorize([signature], cache=True)(function)
    return made


@cache
def erf(dtype: np.dtype[Any]) -> np.ufunc:
    """The error function as a ufunc for float32 or float64."""
    if dtype == np.float32:
        return _ufunc(_erf_single, "float32(float32)")
    return _ufunc(_erf_double, "float64(float64)")
