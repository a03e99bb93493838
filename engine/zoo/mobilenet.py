"""MobileNetV2 of width 1.0 (Sandler et al. 2018)."""

from attrs import frozen

import ops
from engine.graph import Graph
from engine.var import Var
from engine.zoo.layers import convolution, linear, normalization
from engine.zoo.weights import Weights


@frozen
class Stage:
    """A line of table 2 of the paper: t, c, n and s there. The first of the blocks has the stride."""

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
FIRST, LAST, CLASSES = 32, 1280, 1000
_LINEAR = 1.0
"""Gain of weights that follow no ReLU."""
_BRANCH = 0.5
"""Scale of what a block adds to what passes by."""


def mobilenet_v2(batch: int | str = 1, image: int = 224, seed: int = 0) -> Graph:
    """Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits. Weights are seeded.

    Dropout, which does nothing at inference, is left out.
    """
    weights, graph = Weights(seed), Graph("mobilenet_v2")
    x = graph.input("x", (batch, 3, image, image))
    x = _relu6(convolution(x, FIRST, 3, weights, stride=2, gain=_LINEAR), weights)
    for stage in STAGES:
        for block in range(stage.blocks):
            x = _block(x, stage, stage.stride if block == 0 else 1, weights)
    x = _relu6(convolution(x, LAST, 1, weights, gain=_LINEAR), weights)
    x = ops.flatten(ops.global_average_pool(x))
    graph.output(linear(x, CLASSES, weights), "y")
    return graph


def _relu6(x: Var, weights: Weights) -> Var:
    return ops.clip(normalization(x, weights), 0.0, 6.0)


def _block(x: Var, stage: Stage, stride: int, weights: Weights) -> Var:
    """An inverted residual: wider, a 3x3 filter a channel, narrower with no ReLU; plus x where the shapes agree."""
    y, wide = x, x.shape[1] * stage.expansion
    if stage.expansion > 1:
        y = _relu6(convolution(y, wide, 1, weights, gain=_LINEAR), weights)
    y = _relu6(convolution(y, wide, 3, weights, stride=stride, group=wide), weights)
    y = convolution(y, stage.channels, 1, weights)
    if stride > 1 or x.shape[1] != stage.channels:
        return normalization(y, weights)
    return x + normalization(y, weights, scale=_BRANCH)
