"""Softmax on vars."""

from ops.functional.apply import V, apply1
from ops.reduce.softmax import LOG_SOFTMAX, SOFTMAX


def softmax(x: V, axis: int = -1) -> V:
    """exp(x) / sum(exp(x)) along `axis`; same shape as x."""
    return apply1(SOFTMAX, x, axis=axis)


def log_softmax(x: V, axis: int = -1) -> V:
    """log(softmax(x)) along `axis`; same shape as x."""
    return apply1(LOG_SOFTMAX, x, axis=axis)
