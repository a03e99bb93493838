"""Inception with batch normalization (Ioffe and Szegedy 2015), as in MXNet's examples: the network of its memory notes.

Poolings without padding round up, as MXNet's did then, so that an image of 224 has 112, 56, 28, 14 and 7 pixels a side.
Convolutions have no bias: the normalization behind each would take it away.
"""

from typing import Annotated

from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import begin
from engine.zoo.layers import conv_norm_relu
from engine.zoo.network import Batch, Least, Seed, checked
from engine.zoo.weights import Weights


@frozen
class Block:
    """The channels of four branches: 1x1, 3x3, two 3x3 one after the other, and 1x1 after a pooling."""

    one: int
    three: tuple[int, int]
    double: tuple[int, int]
    pooled: int
    pool: str = "average"


@frozen
class Halving:
    """The channels of two branches of stride 2: 3x3, and two 3x3. The third branch is a pooling."""

    three: tuple[int, int]
    double: tuple[int, int]


BLOCKS = (
    Block(64, (64, 64), (64, 96), 32),
    Block(64, (64, 96), (64, 96), 64),
    Halving((128, 160), (64, 96)),
    Block(224, (64, 96), (96, 128), 128),
    Block(192, (96, 128), (96, 128), 128),
    Block(160, (128, 160), (128, 160), 128),
    Block(96, (128, 192), (160, 192), 128),
    Halving((128, 192), (192, 256)),
    Block(352, (192, 320), (160, 224), 128),
    Block(352, (192, 320), (192, 224), 128, "max"),
)
"""3a to 5b."""


@checked
def inception_bn(
    batch: Batch = 1, image: Annotated[int, Least(11)] = 224, seed: Seed = 0, training: bool = False
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    `training`: see `zoo`.
    """
    net = begin("inception_bn", batch, image, seed, training)
    x = conv_norm_relu(net.x, 64, 7, net.weights, stride=2, gain=1.0)
    x = ops.max_pool(x, 3, strides=2, ceil_mode=True)
    x = conv_norm_relu(x, 64, 1, net.weights)
    x = conv_norm_relu(x, 192, 3, net.weights)
    x = ops.max_pool(x, 3, strides=2, ceil_mode=True)
    for block in BLOCKS:
        x = _block(x, block, net.weights) if isinstance(block, Block) else _halving(x, block, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def _block(x: Var, block: Block, weights: Weights) -> Var:
    one = conv_norm_relu(x, block.one, 1, weights)
    three = _three(x, block.three, 1, weights)
    double = _double(x, block.double, 1, weights)
    if block.pool == "max":
        pooled = ops.max_pool(x, 3, pads=1)
    else:
        pooled = ops.average_pool(x, 3, pads=1, count_include_pad=True)
    return ops.concat([one, three, double, conv_norm_relu(pooled, block.pooled, 1, weights)], axis=1)


def _halving(x: Var, block: Halving, weights: Weights) -> Var:
    pooled = ops.max_pool(x, 3, strides=2, pads=1)
    return ops.concat([_three(x, block.three, 2, weights), _double(x, block.double, 2, weights), pooled], axis=1)


def _three(x: Var, channels: tuple[int, int], stride: int, weights: Weights) -> Var:
    narrow, wide = channels
    return conv_norm_relu(conv_norm_relu(x, narrow, 1, weights), wide, 3, weights, stride=stride)


def _double(x: Var, channels: tuple[int, int], stride: int, weights: Weights) -> Var:
    return conv_norm_relu(_three(x, channels, 1, weights), channels[1], 3, weights, stride=stride)
