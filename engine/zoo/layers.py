"""Layers of image networks, with weights that keep the numbers that flow through them about as large as they were."""

import math

import ops
from engine.var import Var
from engine.zoo.weights import Weights

AFTER_RELU = 2.0
"""A ReLU halves the mean square of what is symmetric; weights after one make up for it (He et al. 2015a)."""
_NEAR = 0.1
"""How far statistics, scales and biases are from their means, about."""


def convolution(
    x: Var, outputs: int, kernel: int, weights: Weights, *, stride: int = 1, group: int = 1, gain: float = AFTER_RELU
) -> Var:
    """Without a bias; square, and padded so that stride 1 keeps height and width. `gain`: of the mean square."""
    inputs = x.shape[1] // group
    scale = math.sqrt(gain / (inputs * kernel**2))
    filters = weights.draw(outputs, inputs, kernel, kernel, scale=scale)
    return ops.conv2d(x, filters, strides=stride, pads=kernel // 2, group=group)


def biased_convolution(x: Var, outputs: int, kernel: int, weights: Weights) -> Var:
    """The same with a bias."""
    scale = math.sqrt(AFTER_RELU / (x.shape[1] * kernel**2))
    filters = weights.draw(outputs, x.shape[1], kernel, kernel, scale=scale)
    return ops.conv2d(x, filters, weights.draw(outputs, scale=_NEAR), pads=kernel // 2)


def normalization(x: Var, weights: Weights, *, scale: float = 1.0) -> Var:
    """Batch normalization as at inference; scales about `scale`, running means about 0 and variances about 1."""
    channels = x.shape[1]
    scales = weights.draw(channels, scale=_NEAR * scale, mean=scale)
    bias, mean = (weights.draw(channels, scale=_NEAR) for _ in range(2))
    return ops.batch_norm(x, scales, bias, mean, weights.draw(channels, scale=_NEAR, mean=1.0))


def linear(x: Var, outputs: int, weights: Weights, *, gain: float = AFTER_RELU) -> Var:
    """x @ w.T + b of a matrix."""
    inputs = x.shape[1]
    matrix = weights.draw(outputs, inputs, scale=math.sqrt(gain / inputs))
    return ops.linear(x, matrix, weights.draw(outputs, scale=_NEAR))
