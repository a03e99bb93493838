"""Reductions of a var over axes: all axes where `axes` is None, none where it is empty."""

from collections.abc import Sequence

from ops.functional.apply import V, apply1
from ops.reduce.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)

Axes = Sequence[int] | None


def reduce_max(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Largest element over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MAX, x, axes=axes, keepdims=keepdims)


def reduce_min(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Smallest element over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MIN, x, axes=axes, keepdims=keepdims)


def reduce_sum(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Sum over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_SUM, x, axes=axes, keepdims=keepdims)


def reduce_prod(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Product over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_PROD, x, axes=axes, keepdims=keepdims)


def reduce_mean(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Mean over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MEAN, x, axes=axes, keepdims=keepdims)


def reduce_l1(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Sum of |x| over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_L1, x, axes=axes, keepdims=keepdims)


def reduce_l2(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Root of the sum of x squared over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_L2, x, axes=axes, keepdims=keepdims)


def reduce_sum_square(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """Sum of x squared over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_SUM_SQUARE, x, axes=axes, keepdims=keepdims)


def reduce_log_sum(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """log(sum(x)) over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_LOG_SUM, x, axes=axes, keepdims=keepdims)


def reduce_log_sum_exp(x: V, axes: Axes = None, keepdims: bool = True) -> V:
    """log(sum(exp(x))) over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_LOG_SUM_EXP, x, axes=axes, keepdims=keepdims)
