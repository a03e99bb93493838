"""Normalization on vars."""

from ops.functional.apply import Operand, V, apply1
from ops.norm.batch_norm import BATCH_NORM
from ops.norm.lrn import LRN
from ops.norm.norm import GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM


def batch_norm(x: V, scale: Operand, bias: Operand, mean: Operand, var: Operand, *, epsilon: float = 1e-5) -> V:
    """(x - mean) / sqrt(var + epsilon) * scale + bias, one of each a channel; x (N, C, ...)."""
    return apply1(BATCH_NORM, x, scale, bias, mean, var, epsilon=epsilon)


def layer_norm(x: V, scale: Operand, bias: Operand | None = None, axis: int = -1, epsilon: float = 1e-5) -> V:
    """Mean 0 and variance 1 over the dimensions from `axis` on, then times scale, plus bias."""
    return apply1(LAYER_NORM, x, scale, *(() if bias is None else (bias,)), axis=axis, epsilon=epsilon)


def rms_norm(x: V, scale: Operand, axis: int = -1, epsilon: float = 1e-5) -> V:
    """x / sqrt(mean(x ** 2) + epsilon) * scale over the dimensions from `axis` on."""
    return apply1(RMS_NORM, x, scale, axis=axis, epsilon=epsilon)


def instance_norm(x: V, scale: Operand, bias: Operand, epsilon: float = 1e-5) -> V:
    """Mean 0 and variance 1 in each channel of each image, then times scale (C,), plus bias (C,)."""
    return apply1(INSTANCE_NORM, x, scale, bias, epsilon=epsilon)


def group_norm(x: V, scale: Operand, bias: Operand, num_groups: int, epsilon: float = 1e-5) -> V:
    """Mean 0 and variance 1 in each group of channels of each image, then times scale (C,), plus bias (C,)."""
    return apply1(GROUP_NORM, x, scale, bias, num_groups=num_groups, epsilon=epsilon)


def lrn(x: V, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> V:
    """x / (bias + alpha / size * sum of x ** 2 over `size` channels around) ** beta; x (N, C, spatial...)."""
    return apply1(LRN, x, size=size, alpha=alpha, beta=beta, bias=bias)
