"""ResNet with 18, 50 and 152 layers (He et al. 2015), version 1.5: the 3x3 convolution of a bottleneck has the stride,
as in torchvision."""

from collections.abc import Callable

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import Images, begin
from engine.zoo.layers import conv_norm_relu, convolution, normalization
from engine.zoo.network import Batch, Seed, Size, checked
from engine.zoo.weights import Weights

WIDTHS = (64, 128, 256, 512)
"""Channels of the four stages; from the second stage on, the first block has stride 2."""
EXPANSION = 4
"""How many times a bottleneck widens its channels."""

Block = Callable[[Var, int, int, float, Weights], Var]
"""From x, a width, a stride, and the scale of what it adds to x."""


@checked
def resnet18(batch: Batch = 1, image: Size = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    `training`: see `zoo`.
    """
    return _resnet(begin("resnet18", batch, image, seed, training), _basic, (2, 2, 2, 2))


@checked
def resnet50(batch: Batch = 1, image: Size = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph as `resnet18` with bottlenecks and 50 layers."""
    return _resnet(begin("resnet50", batch, image, seed, training), _bottleneck, (3, 4, 6, 3))


@checked
def resnet152(batch: Batch = 1, image: Size = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph as `resnet18` with bottlenecks and 152 layers."""
    return _resnet(begin("resnet152", batch, image, seed, training), _bottleneck, (3, 8, 36, 3))


def _resnet(net: Images, block: Block, blocks: tuple[int, ...]) -> Graph:
    x = conv_norm_relu(net.x, 64, 7, net.weights, stride=2, gain=1.0)
    x = ops.max_pool(x, 3, strides=2, pads=1)
    scale = sum(blocks) ** -0.5  # with a scale of 1, sixteen blocks would multiply the numbers by 256
    for stage, (width, count) in enumerate(zip(WIDTHS, blocks, strict=True)):
        for i in range(count):
            x = block(x, width, 2 if stage and i == 0 else 1, scale, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def _basic(x: Var, width: int, stride: int, scale: float, weights: Weights) -> Var:
    """Adds a block of two 3x3 convolutions."""
    y = conv_norm_relu(x, width, 3, weights, stride=stride)
    y = normalization(convolution(y, width, 3, weights), weights, scale=scale)
    return ops.relu(y + _beside(x, width, stride, weights))


def _bottleneck(x: Var, width: int, stride: int, scale: float, weights: Weights) -> Var:
    """Adds a block of a narrower, a 3x3 and a wider convolution."""
    y = conv_norm_relu(x, width, 1, weights)
    y = conv_norm_relu(y, width, 3, weights, stride=stride)
    y = normalization(convolution(y, width * EXPANSION, 1, weights), weights, scale=scale)
    return ops.relu(y + _beside(x, width * EXPANSION, stride, weights))


def _beside(x: Var, channels: int, stride: int, weights: Weights) -> Var:
    """Returns the input of a block, projected where its shape differs from the output."""
    if x.shape[1] == channels:
        return x
    return normalization(convolution(x, channels, 1, weights, stride=stride), weights)
