"""AlexNet in one column (Krizhevsky 2014), as in torchvision: without the normalization of responses of 2012."""

from typing import Annotated

import ops
from engine.graph.graph import Graph
from engine.zoo.classifier import begin
from engine.zoo.layers import biased_convolution, linear
from engine.zoo.network import Batch, Least, Seed, checked

HIDDEN = 4096


@checked
def alexnet(batch: Batch = 1, image: Annotated[int, Least(63)] = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    The first linear layer has as many inputs as the last pooling has outputs, so that images of other sizes (from 63
    on) have other weights. Dropout is left out. `training`: see `zoo`.
    """
    net = begin("alexnet", batch, image, seed, training)
    x = ops.relu(biased_convolution(net.x, 64, 11, net.weights, stride=4, pads=2, gain=1.0))
    x = ops.max_pool(x, 3, strides=2)
    x = ops.relu(biased_convolution(x, 192, 5, net.weights))
    x = ops.max_pool(x, 3, strides=2)
    for channels in (384, 256, 256):
        x = ops.relu(biased_convolution(x, channels, 3, net.weights))
    x = ops.flatten(ops.max_pool(x, 3, strides=2))
    for _ in range(2):
        x = ops.relu(linear(x, HIDDEN, net.weights))
    return net.classify(x)
