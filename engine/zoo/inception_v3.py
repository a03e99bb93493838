"""Inception v3 (Szegedy et al. 2015), as in torchvision, without the auxiliary classifier."""

from functools import partial
from typing import Annotated

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import begin
from engine.zoo.layers import SAME, Size, conv_norm_relu
from engine.zoo.network import Batch, Least, Seed, checked
from engine.zoo.weights import Weights

_EPSILON = 0.001


@checked
def inception_v3(
    batch: Batch = 1, image: Annotated[int, Least(75)] = 299, seed: Seed = 0, training: bool = False
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image], at least 75 wide. Output "y":

    [batch, 1000], logits.

    Weights are seeded. Dropout is left out. `training`: see `zoo`.
    """
    net = begin("inception_v3", batch, image, seed, training)
    x = _stem(net.x, net.weights)
    for pooled in (32, 64, 64):
        x = _mixed5(x, pooled, net.weights)
    x = _mixed6a(x, net.weights)
    for width in (128, 160, 160, 192):
        x = _mixed6(x, width, net.weights)
    x = _mixed7a(x, net.weights)
    for _ in range(2):
        x = _mixed7(x, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def _conv(x: Var, channels: int, kernel: Size, weights: Weights, *, stride: int = 1, pads: int = SAME) -> Var:
    return conv_norm_relu(x, channels, kernel, weights, stride=stride, pads=pads, epsilon=_EPSILON)


def _stem(x: Var, weights: Weights) -> Var:
    x = _conv(x, 32, 3, weights, stride=2, pads=0)
    x = _conv(x, 32, 3, weights, pads=0)
    x = ops.max_pool(_conv(x, 64, 3, weights), 3, strides=2)
    x = _conv(_conv(x, 80, 1, weights), 192, 3, weights, pads=0)
    return ops.max_pool(x, 3, strides=2)


def _averaged(x: Var, channels: int, weights: Weights) -> Var:
    return _conv(ops.average_pool(x, 3, pads=1, count_include_pad=True), channels, 1, weights)


def _mixed5(x: Var, pooled: int, weights: Weights) -> Var:
    """Adds a block of figure 5 of the paper: 1x1, 5x5, two 3x3, a pooling."""
    conv = partial(_conv, weights=weights)
    one, five = conv(x, 64, 1), conv(conv(x, 48, 1), 64, 5)
    three = conv(conv(conv(x, 64, 1), 96, 3), 96, 3)
    return ops.concat([one, five, three, _averaged(x, pooled, weights)], axis=1)


def _mixed6a(x: Var, weights: Weights) -> Var:
    """Adds a block that halves height and width."""
    conv = partial(_conv, weights=weights)
    three = conv(x, 384, 3, stride=2, pads=0)
    double = conv(conv(conv(x, 64, 1), 96, 3), 96, 3, stride=2, pads=0)
    return ops.concat([three, double, ops.max_pool(x, 3, strides=2)], axis=1)


def _mixed6(x: Var, width: int, weights: Weights) -> Var:
    """Adds a block of figure 6: 7x7 filters as rows and columns."""
    conv, row, column = partial(_conv, weights=weights), (1, 7), (7, 1)
    one = conv(x, 192, 1)
    seven = conv(conv(conv(x, width, 1), width, row), 192, column)
    double = conv(x, width, 1)
    for channels, kernel in ((width, column), (width, row), (width, column), (192, row)):
        double = conv(double, channels, kernel)
    return ops.concat([one, seven, double, _averaged(x, 192, weights)], axis=1)


def _mixed7a(x: Var, weights: Weights) -> Var:
    """Adds a second block that halves height and width."""
    conv = partial(_conv, weights=weights)
    three = conv(conv(x, 192, 1), 320, 3, stride=2, pads=0)
    seven = conv(conv(conv(x, 192, 1), 192, (1, 7)), 192, (7, 1))
    seven = conv(seven, 192, 3, stride=2, pads=0)
    return ops.concat([three, seven, ops.max_pool(x, 3, strides=2)], axis=1)


def _mixed7(x: Var, weights: Weights) -> Var:
    """Adds a block of figure 7: rows and columns side by side."""
    conv = partial(_conv, weights=weights)
    one, three = conv(x, 320, 1), conv(x, 384, 1)
    three = ops.concat([conv(three, 384, (1, 3)), conv(three, 384, (3, 1))], axis=1)
    double = conv(conv(x, 448, 1), 384, 3)
    double = ops.concat([conv(double, 384, (1, 3)), conv(double, 384, (3, 1))], axis=1)
    return ops.concat([one, three, double, _averaged(x, 192, weights)], axis=1)
