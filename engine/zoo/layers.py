"""Layers of image networks, with random weights that keep the scale of the values that pass through."""

import math

import ops
from engine.graph.var import Var
from engine.zoo.weights import Weights

Size = int | tuple[int, int]
"""The side of a square, or height and width."""
AFTER_RELU = 2.0
"""A ReLU halves the mean square of a symmetric distribution; the weights after it compensate (He et al. 2015a)."""
_NEAR = 0.1
"""The standard deviation of statistics, scales and biases around their means."""
SAME = -1
"""Padding that keeps height and width at stride 1."""


def convolution(
    x: Var,
    outputs: int,
    kernel: Size,
    weights: Weights,
    *,
    stride: int = 1,
    pads: int = SAME,
    group: int = 1,
    gain: float = AFTER_RELU,
    bias: bool = False,
) -> Var:
    """Adds a convolution with kernels of odd sides. `gain` scales the mean square of the output."""
    name, inputs, (height, width) = weights.layer("conv"), x.shape[1] // group, _pair(kernel)
    scale = math.sqrt(gain / (inputs * height * width))
    filters = weights.draw(f"{name}/weight", outputs, inputs, height, width, scale=scale)
    biases = weights.draw(f"{name}/bias", outputs, scale=_NEAR) if bias else None
    around = (height // 2, width // 2) if pads == SAME else pads
    return ops.conv2d(x, filters, biases, strides=stride, pads=around, group=group)


def biased_convolution(
    x: Var, outputs: int, kernel: int, weights: Weights, *, stride: int = 1, pads: int = SAME, gain: float = AFTER_RELU
) -> Var:
    """Adds a convolution with a bias."""
    return convolution(x, outputs, kernel, weights, stride=stride, pads=pads, gain=gain, bias=True)


def up_convolution(x: Var, outputs: int, weights: Weights, *, gain: float = AFTER_RELU) -> Var:
    """Adds a transposed convolution that doubles height and width:

    each pixel becomes a square of 2 by 2, with a bias.
    """
    name, inputs = weights.layer("conv_transpose"), x.shape[1]
    filters = weights.draw(f"{name}/weight", inputs, outputs, 2, 2, scale=math.sqrt(gain / inputs))
    return ops.conv_transpose(x, filters, weights.draw(f"{name}/bias", outputs, scale=_NEAR), strides=2)


def normalization(x: Var, weights: Weights, *, scale: float = 1.0, epsilon: float = 1e-5) -> Var:
    """Adds a batch normalization; scales are near `scale`, running means near 0 and variances near 1."""
    name, channels = weights.layer("batch_norm"), x.shape[1]
    scales = weights.draw(f"{name}/scale", channels, scale=_NEAR * scale, mean=scale)
    bias = weights.draw(f"{name}/bias", channels, scale=_NEAR)
    mean = weights.draw(f"{name}/running_mean", channels, scale=_NEAR, trainable=False)
    variance = weights.draw(f"{name}/running_variance", channels, scale=_NEAR, mean=1.0, trainable=False)
    if weights.training:
        return ops.batch_norm_running(x, scales, bias, mean, variance, epsilon=epsilon)
    return ops.batch_norm(x, scales, bias, mean, variance, epsilon=epsilon)


def linear(x: Var, outputs: int, weights: Weights, *, gain: float = AFTER_RELU) -> Var:
    """Adds x @ w.T + b of a matrix."""
    name, inputs = weights.layer("gemm"), x.shape[1]
    matrix = weights.draw(f"{name}/weight", outputs, inputs, scale=math.sqrt(gain / inputs))
    return ops.linear(x, matrix, weights.draw(f"{name}/bias", outputs, scale=_NEAR))


def conv_norm_relu(
    x: Var,
    outputs: int,
    kernel: Size,
    weights: Weights,
    *,
    stride: int = 1,
    pads: int = SAME,
    group: int = 1,
    gain: float = AFTER_RELU,
    epsilon: float = 1e-5,
) -> Var:
    """Adds a convolution, a batch normalization and a ReLU: the block of most image networks."""
    y = convolution(x, outputs, kernel, weights, stride=stride, pads=pads, group=group, gain=gain)
    return ops.relu(normalization(y, weights, epsilon=epsilon))


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)
