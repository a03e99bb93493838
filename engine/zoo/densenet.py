"""DenseNet with 121 layers (Huang et al. 2016)."""

from typing import Annotated

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import begin
from engine.zoo.layers import conv_norm_relu, convolution, normalization
from engine.zoo.network import Batch, Least, Seed, checked
from engine.zoo.weights import Weights

LAYERS = (6, 12, 24, 16)
"""The number of layers of each block."""
GROWTH, BOTTLENECK = 32, 128
"""Channels that a layer adds, and those in its middle."""


@checked
def densenet121(
    batch: Batch = 1, image: Annotated[int, Least(29)] = 224, seed: Seed = 0, training: bool = False
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    `training`: see `zoo`.
    """
    net = begin("densenet121", batch, image, seed, training)
    x = conv_norm_relu(net.x, 64, 7, net.weights, stride=2, gain=1.0)
    x = ops.max_pool(x, 3, strides=2, pads=1)
    for block, layers in enumerate(LAYERS):
        x = _transition(x, net.weights) if block else x
        for _ in range(layers):
            x = ops.concat([x, _layer(x, net.weights)], axis=1)
    x = ops.relu(normalization(x, net.weights))
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def _layer(x: Var, weights: Weights) -> Var:
    """Adds the new channels of a layer, from all channels before."""
    y = convolution(ops.relu(normalization(x, weights)), BOTTLENECK, 1, weights)
    return convolution(ops.relu(normalization(y, weights)), GROWTH, 3, weights)


def _transition(x: Var, weights: Weights) -> Var:
    """Adds a convolution and a pooling that halve channels, height and width."""
    y = convolution(ops.relu(normalization(x, weights)), x.shape[1] // 2, 1, weights)
    return ops.average_pool(y, 2, strides=2)
