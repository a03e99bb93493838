"""|x| ** p and its inverse as steps on arrays, for Lp norms."""

from functools import partial

import numpy as np

from ops.schema.schema import Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import Array


def powers(p: int, source: Array, out: Array) -> tuple[Thunk, ...]:
    """Returns steps that write |source| ** p into `out` (same shape, a dtype that holds the source's)."""
    steps: list[Thunk] = []
    if source.dtype != out.dtype:
        steps.append(partial(np.copyto, out, source))
        source = out
    steps.append(partial(np.absolute, source, out) if p != 2 else partial(np.multiply, source, source, out))
    if p > 2:
        steps.append(partial(np.power, out, constant(p, out.dtype), out))
    return tuple(steps)


def roots(p: int, sums: Array) -> tuple[Thunk, ...]:
    """Returns steps that take the p-th root of `sums` in place."""
    if p == 1:
        return ()
    if p == 2:
        return (partial(np.sqrt, sums, sums),)
    return (partial(np.power, sums, constant(1 / p, sums.dtype), sums),)
