"""The error function, compiled by numba on first use."""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ops.elementwise.erf import SINGLE_EDGE, SINGLE_P, SINGLE_Q
from ops.native.cache import kept

_EDGE = np.float32(SINGLE_EDGE)
_P, _Q = (tuple(map(np.float32, row)) for row in (SINGLE_P, SINGLE_Q))


def _erf_single(x: Any) -> Any:
    """Computes the approximation of `ops.elementwise.erf` for float32; numba vectorises it."""
    one = np.float32(1)
    t = min(max(x, -_EDGE), _EDGE)
    s = t * t
    p = (((_P[0] * s + _P[1]) * s + _P[2]) * s + _P[3]) * s + _P[4]
    q = (((((_Q[0] * s + _Q[1]) * s + _Q[2]) * s + _Q[3]) * s + _Q[4]) * s + _Q[5]) * s + _Q[6]
    return min(max(t * p / q, -one), one)


def _erf_double(x: Any) -> Any:
    return math.erf(x)


def _ufunc(function: Callable[[Any], Any], signature: str) -> np.ufunc:
    numba = import_module("numba")
    ufunc: np.ufunc = kept(
        function, signature, lambda is_cached: numba.vectorize([signature], cache=is_cached)(function)
    )
    return ufunc


@cache
def erf(dtype: np.dtype[Any]) -> np.ufunc:
    """Returns the error function as a ufunc for float32 or float64."""
    if dtype == np.float32:
        return _ufunc(_erf_single, "float32(float32)")
    return _ufunc(_erf_double, "float64(float64)")
