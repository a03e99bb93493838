"""An encoder transformer (Vaswani et al. 2017, post-norm as in BERT): MiniLM's size unless told otherwise."""

from attrs import frozen

from engine.graph.graph import Graph
from engine.zoo.classifier import finish
from engine.zoo.transformer import dense, encoder_layer
from engine.zoo.weights import Weights

CLASSES = 2
"""The number of classes between which a trained model decides."""


@frozen
class EncoderSize:
    """The size of an encoder: `width` is a multiple of `heads`; the feed-forward layer is `expansion` times as wide.

    `sequence` and `batch` may be names.
    """

    layers: int = 6
    width: int = 384
    heads: int = 12
    sequence: int | str = 128
    batch: int | str = 1
    expansion: int = 4


def encoder(size: EncoderSize | None = None, seed: int = 0, training: bool = False) -> Graph:
    """Returns a graph. Input "x": float32 [batch, sequence, width]. Output "y": the same shape. Weights are seeded.

    The input has embedded tokens. With `training` (see `zoo`) the first token is classified into one of two classes.
    """
    size = size or EncoderSize()
    graph = Graph(f"encoder{size.layers}x{size.width}")
    weights = Weights(graph, seed, training)
    x = graph.input("x", (size.batch, size.sequence, size.width))
    for _ in range(size.layers):
        x = encoder_layer(x, size.heads, size.expansion, weights)
    return finish(graph, dense(x[:, 0], CLASSES, weights, "class") if training else x, training=training)
