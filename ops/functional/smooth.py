"""Smooth activations of one var; the output has the shape of x."""

from ops.elementwise.smooth import CELU, ELU, GELU, MISH, SELU, SIGMOID, SOFTPLUS, SWISH
from ops.functional.apply import V, apply1


def sigmoid(x: V) -> V:
    """1 / (1 + exp(-x))"""
    return apply1(SIGMOID, x)


def swish(x: V, alpha: float = 1.0) -> V:
    """x * sigmoid(alpha * x); SiLU where alpha is 1."""
    return apply1(SWISH, x, alpha=alpha)


def gelu(x: V, approximate: str = "none") -> V:
    """x times the normal distribution function of x; `approximate` is none or tanh."""
    return apply1(GELU, x, approximate=approximate)


def elu(x: V, alpha: float = 1.0) -> V:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return apply1(ELU, x, alpha=alpha)


def selu(x: V, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> V:
    """gamma * elu(x, alpha)"""
    return apply1(SELU, x, alpha=alpha, gamma=gamma)


def celu(x: V, alpha: float = 1.0) -> V:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)"""
    return apply1(CELU, x, alpha=alpha)


def softplus(x: V) -> V:
    """log(1 + exp(x))"""
    return apply1(SOFTPLUS, x)


def mish(x: V) -> V:
    """x * tanh(softplus(x))"""
    return apply1(MISH, x)
