"""ResNet with 50 layers (He et al. 2015), version 1.5: the 3x3 convolution has the stride, as in torchvision."""

from attrs import frozen

import ops
from engine.graph import Graph
from engine.var import Var
from engine.zoo.layers import convolution, linear, normalization
from engine.zoo.weights import Weights


@frozen
class Stage:
    """Consecutive blocks of one width; the first of them has the stride."""

    width: int
    blocks: int
    stride: int


STAGES = (Stage(64, 3, 1), Stage(128, 4, 2), Stage(256, 6, 2), Stage(512, 3, 2))
EXPANSION, CLASSES = 4, 1000
_BRANCH = 0.25
"""Scale of what a block adds to what passes by: sixteen blocks of 1 would make the numbers 256 times as large."""


def resnet50(batch: int | str = 1, image: int = 224, seed: int = 0) -> Graph:
    """Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits. Weights are seeded."""
    weights, graph = Weights(seed), Graph("resnet50")
    x = graph.input("x", (batch, 3, image, image))
    x = ops.relu(normalization(convolution(x, 64, 7, weights, stride=2, gain=1.0), weights))
    x = ops.max_pool(x, 3, strides=2, pads=1)
    for stage in STAGES:
        for block in range(stage.blocks):
            x = _block(x, stage.width, stage.stride if block == 0 else 1, weights)
    x = ops.flatten(ops.global_average_pool(x))
    graph.output(linear(x, CLASSES, weights), "y")
    return graph


def _block(x: Var, width: int, stride: int, weights: Weights) -> Var:
    """A bottleneck, and beside it what it was given: as it is, or projected where its shape differs."""
    y = ops.relu(normalization(convolution(x, width, 1, weights), weights))
    y = ops.relu(normalization(convolution(y, width, 3, weights, stride=stride), weights))
    y = normalization(convolution(y, width * EXPANSION, 1, weights), weights, scale=_BRANCH)
    if x.shape[1] != width * EXPANSION:
        x = normalization(convolution(x, width * EXPANSION, 1, weights, stride=stride), weights)
    return ops.relu(y + x)
