"""SqueezeNet 1.1 (Iandola et al. 2016; version 1.1 needs 2.4 times less work than 1.0)."""

from typing import Annotated

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import CLASSES, begin
from engine.zoo.layers import biased_convolution
from engine.zoo.network import Batch, Least, Seed, checked
from engine.zoo.weights import Weights

FIRES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
"""Squeezed and expanded channels of the modules behind each pooling."""


@checked
def squeezenet(
    batch: Batch = 1, image: Annotated[int, Least(25)] = 224, seed: Seed = 0, training: bool = False
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image], at least 25 wide. Output "y":

    [batch, 1000], logits.

    Weights are seeded. Dropout is left out. `training`: see `zoo`.
    """
    net = begin("squeezenet", batch, image, seed, training)
    x = ops.relu(biased_convolution(net.x, 64, 3, net.weights, stride=2, pads=0, gain=1.0))
    for modules in FIRES:
        x = ops.max_pool(x, 3, strides=2, ceil_mode=True)
        for squeezed, expanded in modules:
            x = _fire(x, squeezed, expanded, net.weights)
    x = ops.relu(biased_convolution(x, CLASSES, 1, net.weights))
    return net.finish(ops.flatten(ops.global_average_pool(x)))


def _fire(x: Var, squeezed: int, expanded: int, weights: Weights) -> Var:
    x = ops.relu(biased_convolution(x, squeezed, 1, weights))
    return ops.concat([ops.relu(biased_convolution(x, expanded, kernel, weights)) for kernel in (1, 3)], axis=1)
