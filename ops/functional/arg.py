"""Positions of extremes of a var."""

from ops.functional.apply import V, apply1
from ops.reduce.arg import ARG_MAX, ARG_MIN


def arg_max(x: V, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> V:
    """int64 position of the largest element along `axis`; the first of equals, or the last."""
    return apply1(ARG_MAX, x, axis=axis, keepdims=keepdims, select_last_index=select_last_index)


def arg_min(x: V, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> V:
    """int64 position of the smallest element along `axis`; the first of equals, or the last."""
    return apply1(ARG_MIN, x, axis=axis, keepdims=keepdims, select_last_index=select_last_index)
