"""Activations of one var; the output has the shape of x."""

from ops.elementwise.activation import (
    CLIP,
    HARD_SIGMOID,
    HARD_SWISH,
    LEAKY_RELU,
    PRELU,
    RELU,
    SHRINK,
    SOFTSIGN,
    TANH,
    THRESHOLDED_RELU,
)
from ops.functional.apply import V, apply1
from ops.functional.operands import Mixed
from ops.tensor.limits import highest, lowest


def relu(x: V) -> V:
    """max(x, 0)"""
    return apply1(RELU, x)


def tanh(x: V) -> V:
    """Hyperbolic tangent."""
    return apply1(TANH, x)


def leaky_relu(x: V, alpha: float = 0.01) -> V:
    """x where x > 0, else alpha * x."""
    return apply1(LEAKY_RELU, x, alpha=alpha)


def hard_sigmoid(x: V, alpha: float = 0.2, beta: float = 0.5) -> V:
    """min(max(alpha * x + beta, 0), 1)"""
    return apply1(HARD_SIGMOID, x, alpha=alpha, beta=beta)


def hard_swish(x: V) -> V:
    """x * min(max(x / 6 + 1/2, 0), 1)"""
    return apply1(HARD_SWISH, x)


def softsign(x: V) -> V:
    """x / (1 + |x|)"""
    return apply1(SOFTSIGN, x)


def thresholded_relu(x: V, alpha: float = 1.0) -> V:
    """x above alpha, else 0."""
    return apply1(THRESHOLDED_RELU, x, alpha=alpha)


def shrink(x: V, bias: float = 0.0, lambd: float = 0.5) -> V:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    return apply1(SHRINK, x, bias=bias, lambd=lambd)


def prelu(x: V, slope: Mixed[V]) -> V:
    """x where x > 0, else slope * x; slope broadcasts to x."""
    return apply1(PRELU, x, slope)


def clip(x: V, lo: Mixed[V] | None = None, hi: Mixed[V] | None = None) -> V:
    """min(max(x, lo), hi) for scalars; without a bound, the smallest or largest number of x's dtype."""
    dtype = x.spec.dtype
    return apply1(CLIP, x, lowest(dtype) if lo is None else lo, highest(dtype) if hi is None else hi)
