"""VGG with 16 and 19 layers: configurations D and E of Simonyan and Zisserman 2014."""

from typing import Annotated

import ops
from engine.graph.graph import Graph
from engine.zoo.classifier import Images, begin
from engine.zoo.layers import biased_convolution, linear
from engine.zoo.network import Batch, Least, Seed, checked

CHANNELS = (64, 128, 256, 512, 512)
"""Channels of each block; a pooling ends a block."""
HIDDEN = 4096


@checked
def vgg16(batch: Batch = 1, image: Annotated[int, Least(32)] = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    Weights are seeded.

    The first of the three linear layers has as many inputs as the last block has outputs, so that images of other sizes
    (from 32 on) have other weights. Dropout is left out. `training`: see `zoo`.
    """
    return _vgg(begin("vgg16", batch, image, seed, training), (2, 2, 3, 3, 3))


@checked
def vgg19(batch: Batch = 1, image: Annotated[int, Least(32)] = 224, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph as `vgg16` with 19 layers."""
    return _vgg(begin("vgg19", batch, image, seed, training), (2, 2, 4, 4, 4))


def _vgg(net: Images, convolutions: tuple[int, ...]) -> Graph:
    x = net.x
    for channels, count in zip(CHANNELS, convolutions, strict=True):
        for _ in range(count):
            x = ops.relu(biased_convolution(x, channels, 3, net.weights))
        x = ops.max_pool(x, 2, strides=2)
    x = ops.flatten(x)
    for _ in range(2):
        x = ops.relu(linear(x, HIDDEN, net.weights))
    return net.classify(x)
