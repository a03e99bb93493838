"""A U-Net (Ronneberger et al. 2015), which says for each pixel what it belongs to.

As in most programs of today, convolutions are padded, so that the output is as large as the input, and normalized.
"""

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import OptionError
from engine.zoo.classifier import begin
from engine.zoo.layers import biased_convolution, conv_norm_relu, up_convolution
from engine.zoo.network import Batch, Count, Seed, Size, checked
from engine.zoo.weights import Weights

CLASSES = 2


@checked
def unet(
    batch: Batch = 1, image: Size = 256, seed: Seed = 0, training: bool = False, *, width: Size = 64, depth: Count = 4
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 2, image, image], logits.

    Weights are seeded. `width` is the number of channels at full size; it doubles with each of the `depth` poolings,
    and `image` is a multiple of 2 ** depth. `training`: see `zoo`; the label is [batch, image, image].
    """
    if image >> depth << depth != image:
        raise OptionError(f"unet: image is a multiple of 2 ** depth (depth is {depth}), not {image}")
    net = begin("unet", batch, image, seed, training)
    x, skipped = _twice(net.x, width, net.weights), []
    for level in range(1, depth + 1):
        skipped.append(x)
        x = _twice(ops.max_pool(x, 2, strides=2), width * 2**level, net.weights)
    for level in reversed(range(depth)):
        x = up_convolution(x, width * 2**level, net.weights, gain=1.0)
        x = _twice(ops.concat([skipped.pop(), x], axis=1), width * 2**level, net.weights)
    return net.finish(biased_convolution(x, CLASSES, 1, net.weights))


def _twice(x: Var, channels: int, weights: Weights) -> Var:
    for _ in range(2):
        x = conv_norm_relu(x, channels, 3, weights)
    return x
