"""VGG with 16 layers: configuration D of Simonyan and Zisserman 2014."""

import ops
from engine.graph import Graph
from engine.zoo.layers import biased_convolution, linear
from engine.zoo.weights import Weights

BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of each block; a pooling ends it."""
HIDDEN, CLASSES = 4096, 1000


def vgg16(batch: int | str = 1, image: int = 224, seed: int = 0) -> Graph:
    """Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits. Weights are seeded.

    The first of the three linear layers has as many inputs as the last block has outputs, so that images of other sizes
    (from 32 on) have other weights. Dropout, which does nothing at inference, is left out.
    """
    weights, graph = Weights(seed), Graph("vgg16")
    x = graph.input("x", (batch, 3, image, image))
    for channels, count in BLOCKS:
        for _ in range(count):
            x = ops.relu(biased_convolution(x, channels, 3, weights))
        x = ops.max_pool(x, 2, strides=2)
    x = ops.flatten(x)
    for _ in range(2):
        x = ops.relu(linear(x, HIDDEN, weights))
    graph.output(linear(x, CLASSES, weights), "y")
    return graph
