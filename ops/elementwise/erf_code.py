"""The error function. Imports numba: a door loads it."""

import math
from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable
from ops.elementwise.args import ERF
from ops.elementwise.erf import SINGLE_EDGE, SINGLE_P, SINGLE_Q
from ops.native.memory import record_at

_EDGE = np.float32(SINGLE_EDGE)
_P, _Q = (tuple(map(np.float32, row)) for row in (SINGLE_P, SINGLE_Q))


@jitable
def _erf_single(x: Any) -> Any:
    """Computes the approximation of `ops.elementwise.erf` for float32; numba vectorises it."""
    one = np.float32(1)
    t = min(max(x, -_EDGE), _EDGE)
    s = t * t
    p = (((_P[0] * s + _P[1]) * s + _P[2]) * s + _P[3]) * s + _P[4]
    q = (((((_Q[0] * s + _Q[1]) * s + _Q[2]) * s + _Q[3]) * s + _Q[4]) * s + _Q[5]) * s + _Q[6]
    return min(max(t * p / q, -one), one)


@jitable
def _erf_double(x: Any) -> Any:
    return math.erf(x)


def _declare(function: Any, dtype: Any) -> None:
    """Declares erf_DTYPE, which computes all elements; the arguments are an ERF record."""

    @entry(CALL, fastmath=EXACT, name=f"erf_{np.dtype(dtype).name}")
    def erf(address: int) -> int:
        args = record_at(address, ERF)
        x, y = array_at(args.x, (args.count,), dtype), array_at(args.y, (args.count,), dtype)
        if args.x == args.y:  # one array, so that LLVM uses vectors
            for i in range(len(y)):
                y[i] = function(y[i])
        else:
            for i in range(len(y)):
                y[i] = function(x[i])
        return 0


_declare(_erf_single, np.float32)
_declare(_erf_double, np.float64)
