"""MobileNets of width 1.0: the first (Howard et al. 2017) and the second (Sandler et al. 2018)."""

from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import begin
from engine.zoo.layers import conv_norm_relu, convolution, normalization
from engine.zoo.network import Batch, Seed, Size, checked
from engine.zoo.weights import Weights

SEPARABLE = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1),
)  # fmt: skip
"""Channels and stride of each separable convolution of the first: table 1 of its paper."""


@frozen
class Stage:
    """A line of table 2 of the second paper: t, c, n and s there. The first of the blocks has the stride."""

    expansion: int
    channels: int
    blocks: int
    stride: int


STAGES = (
    Stage(1, 16, 1, 1),
    Stage(6, 24, 2, 2),
    Stage(6, 32, 3, 2),
    Stage(6, 64, 4, 2),
    Stage(6, 96, 3, 1),
    Stage(6, 160, 3, 2),
    Stage(6, 320, 1, 1),
)
FIRST, LAST = 32, 1280
_LINEAR = 1.0
"""Gain of weights that follow no ReLU."""
_BRANCH = 0.5
"""Scale of what a block adds to what passes by."""


@checked
def mobilenet_v1(batch: Batch = 1, image: Size = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    `training`: see `zoo`.
    """
    net = begin("mobilenet_v1", batch, image, seed, training)
    x = conv_norm_relu(net.x, FIRST, 3, net.weights, stride=2, gain=_LINEAR)
    for channels, stride in SEPARABLE:
        x = conv_norm_relu(x, x.shape[1], 3, net.weights, stride=stride, group=x.shape[1])
        x = conv_norm_relu(x, channels, 1, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


@checked
def mobilenet_v2(batch: Batch = 1, image: Size = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    Dropout is left out. `training`: see `zoo`.
    """
    net = begin("mobilenet_v2", batch, image, seed, training)
    x = _relu6(convolution(net.x, FIRST, 3, net.weights, stride=2, gain=_LINEAR), net.weights)
    for stage in STAGES:
        for block in range(stage.blocks):
            x = _block(x, stage, stage.stride if block == 0 else 1, net.weights)
    x = _relu6(convolution(x, LAST, 1, net.weights, gain=_LINEAR), net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def _relu6(x: Var, weights: Weights) -> Var:
    return ops.clip(normalization(x, weights), 0.0, 6.0)


def _block(x: Var, stage: Stage, stride: int, weights: Weights) -> Var:
    """Adds an inverted residual:

    wider, a 3x3 filter a channel, narrower with no ReLU; plus x where the shapes agree.
    """
    y, wide = x, x.shape[1] * stage.expansion
    if stage.expansion > 1:
        y = _relu6(convolution(y, wide, 1, weights, gain=_LINEAR), weights)
    y = _relu6(convolution(y, wide, 3, weights, stride=stride, group=wide), weights)
    y = convolution(y, stage.channels, 1, weights)
    if stride > 1 or x.shape[1] != stage.channels:
        return normalization(y, weights)
    return x + normalization(y, weights, scale=_BRANCH)
